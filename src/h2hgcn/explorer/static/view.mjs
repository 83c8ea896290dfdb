// Isometries of the disk, what is seen of it, and the view in the page's address.

// Isometries of the Poincaré disk that keep its orientation: z -> (a z + b) / (conj(b) z + conj(a)), |a|² - |b|² = 1.
// A view is such a pair (a, b) of complex numbers, kept as four real ones: the matrices of SU(1,1).

export const IDENTITY = Object.freeze([1, 0, 0, 0]);

// A translation farther than this (hyperbolic distance 28) is taken in several steps.
const FARTHEST = 1 - 1e-12;

/** First `h`, then `g`. Rounding is taken back at every step, so that thousands of them add up to nothing. */
export function compose(g, h) {
  const [ar, ai, br, bi] = g;
  const [cr, ci, dr, di] = h;
  return normalized([
    ar * cr - ai * ci + br * dr + bi * di,
    ar * ci + ai * cr + bi * dr - br * di,
    ar * dr - ai * di + br * cr + bi * ci,
    ar * di + ai * dr + bi * cr - br * ci,
  ]);
}

/** |a| follows from |b|: the difference |a|² - |b|² itself would cancel far from the middle. */
export function normalized([ar, ai, br, bi]) {
  const scale = Math.sqrt(1 + br * br + bi * bi) / Math.hypot(ar, ai);
  return [ar * scale, ai * scale, br, bi];
}

export function inverse([ar, ai, br, bi]) {
  return [ar, -ai, -br, -bi];
}

/** Where a point of the disk is seen. */
export function apply([ar, ai, br, bi], x, y) {
  const nr = ar * x - ai * y + br;
  const ni = ar * y + ai * x + bi;
  const dr = br * x + bi * y + ar;
  const di = br * y - bi * x - ai;
  const square = dr * dr + di * di;
  return [(nr * dr + ni * di) / square, (ni * dr - nr * di) / square];
}

/** The translation that takes the middle to (x, y). */
export function translation(x, y) {
  const length = Math.hypot(x, y);
  const shrink = length > FARTHEST ? FARTHEST / length : 1;
  const inside = Math.min(length, FARTHEST);
  const a = 1 / Math.sqrt((1 - inside) * (1 + inside));
  return [a, 0, a * x * shrink, a * y * shrink];
}

/** The translation z -> (z + c) / (1 + conj(c) z) that takes (x, y) to (u, v): a drag. */
export function drag(x, y, u, v) {
  // c - k conj(c) = e, with k the product of the two points and e their difference
  const kr = x * u - y * v;
  const ki = x * v + y * u;
  const er = u - x;
  const ei = v - y;
  const scale = 1 - kr * kr - ki * ki;
  return translation((er + kr * er + ki * ei) / scale, (ei + ki * er - kr * ei) / scale);
}

/** A step of hyperbolic length `distance` in the direction of an angle. */
export function step(distance, angle) {
  const length = Math.tanh(distance / 2);
  return translation(length * Math.cos(angle), length * Math.sin(angle));
}

/** The view moved along a geodesic, so that the point (x, y) lies in the middle. */
export function centred(view, x, y) {
  let found = view;
  for (let round = 0; round < 8; round += 1) {
    const [u, v] = apply(found, x, y);
    if (Math.hypot(u, v) < 1e-14) break;
    found = compose(translation(-u, -v), found);
  }
  return found;
}

/** The view a share of the way along that geodesic; distances are hyperbolic, so the pace is even. */
export function approaching(view, x, y, share) {
  const [u, v] = apply(view, x, y);
  return compose(step(distanceToMiddle(u, v) * share, Math.atan2(-v, -u)), view);
}

/** The hyperbolic distance of a point of the disk to its middle. */
export function distanceToMiddle(x, y) {
  const length = Math.min(Math.hypot(x, y), 1 - Number.EPSILON);
  return Math.log1p((2 * length) / (1 - length));
}

/** How far a view takes the middle. */
export function reach([, , br, bi]) {
  return 2 * Math.asinh(Math.hypot(br, bi));
}

// Points in a frame that follows the viewer.
//
// A graphics card computes in float32, whose numbers next to the boundary of the disk are 6e-8 apart: beyond a distance
// of 12 or so all points would fall together. So the card gets points as seen from somewhere near the viewer, computed
// here in float64, and moves them by the rest of the way, which is never longer than REACH. A Möbius map of reach d
// enlarges errors by at most exp(d): what is seen is right to about 1e-5 of the disk's radius wherever one walks.

export const REACH = 4;
const MOST_FITTED = 40; // closer together they count as one place

export class Frame {
  /** `points` is a Float64Array x, y, x, y, ... in the disk. */
  constructor(points) {
    this.points = points;
    this.count = points.length / 2;
    this.base = IDENTITY;
    this.near = new Float32Array(points);
  }

  /** What is left to do for a view of the points in `near`. */
  rest(view) {
    return compose(view, inverse(this.base));
  }

  /** Takes the frame to a view that is too far from it; tells whether `near` has changed. */
  follow(view) {
    if (reach(this.rest(view)) <= REACH) return false;
    this.base = view;
    moved(view, this.points, this.near);
    return true;
  }

  /** Where a node is seen, from its own coordinates. */
  seen(view, node) {
    return apply(view, this.points[2 * node], this.points[2 * node + 1]);
  }

  /** Where all nodes are seen, as x, y, x, y, ... in an array of the caller's. */
  allSeen(view, result) {
    moved(this.rest(view), this.near, result);
  }
}

/** The zoom at which a crowd about the middle can be told apart; 1 for points that fill the disk as it is. */
export function fittingZoom(points) {
  let most = 0;
  for (let at = 0; at < points.length; at += 2) most = Math.max(most, points[at] ** 2 + points[at + 1] ** 2);
  const zoom = 0.8 / Math.sqrt(most);
  return zoom > 1.5 && zoom < MOST_FITTED ? zoom : 1;
}

/** All points under a view. */
export function moved([ar, ai, br, bi], points, result) {
  for (let at = 0; at < points.length; at += 2) {
    const x = points[at];
    const y = points[at + 1];
    const nr = ar * x - ai * y + br;
    const ni = ar * y + ai * x + bi;
    const dr = br * x + bi * y + ar;
    const di = br * y - bi * x - ai;
    const scale = 1 / (dr * dr + di * di);
    result[at] = (nr * dr + ni * di) * scale;
    result[at + 1] = (ni * dr - nr * di) * scale;
  }
}

// A link that restores what is seen.

export const LEAST_ZOOM = 0.5;
export const MOST_ZOOM = 60;

/** The part of an address after #. Numbers are written in full, so that the view comes back to the last bit. */
export function written({ view, zoom, column, node, picture }) {
  const parts = [["view", view.join(",")], ["zoom", zoom]];
  if (column) parts.push(["colour", column]);
  if (picture) parts.push(["picture", picture]);
  if (node !== null && node !== undefined) parts.push(["node", node]);
  return `#${parts.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
}

/** What such an address says; whatever makes no sense is left out. */
export function read(hash) {
  const found = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  return {
    view: viewFrom(found.get("view")),
    zoom: zoomFrom(found.get("zoom")),
    column: found.get("colour"),
    node: found.get("node"),
    picture: found.get("picture"),
  };
}

function viewFrom(text) {
  const numbers = (text ?? "").split(",").map(Number);
  const isView = text && numbers.length === 4 && numbers.every((value) => Math.abs(value) < 1e9) && (numbers[0] || numbers[1]);
  return isView ? normalized(numbers) : null;
}

function zoomFrom(text) {
  const zoom = Number(text);
  return text && Number.isFinite(zoom) ? Math.max(LEAST_ZOOM, Math.min(MOST_ZOOM, zoom)) : null;
}
