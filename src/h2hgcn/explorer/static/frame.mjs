// Points in a frame that follows the viewer.
//
// A graphics card computes in float32, whose numbers next to the boundary of the disk are 6e-8 apart: beyond a distance
// of 12 or so all points would fall together. So the card gets points as seen from somewhere near the viewer, computed
// here in float64, and moves them by the rest of the way, which is never longer than REACH. A Möbius map of reach d
// enlarges errors by at most exp(d): what is seen is right to about 1e-5 of the disk's radius wherever one walks.
import { IDENTITY, apply, compose, inverse, reach } from "./view.mjs";

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
