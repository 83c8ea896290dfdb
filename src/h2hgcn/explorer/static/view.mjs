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
