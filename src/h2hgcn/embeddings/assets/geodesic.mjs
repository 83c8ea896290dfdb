// Geodesics of the Poincaré disk: arcs of circles that meet the boundary at right angles, or straight lines.

// Larger circles are drawn as lines; within the disk these stray by less than a pixel's fraction.
const STRAIGHT = 1e3;

/** The geodesic from (x, y) to (u, v); `radius` is 0 for a line, `turn` is 1 where it runs counterclockwise. */
export function geodesic(x, y, u, v) {
  // |c|² = 1 + r² and 2 c·p = 1 + |p|² for both ends p: two linear equations for the centre c
  const cross = x * v - y * u;
  const first = (1 + x * x + y * y) / 2;
  const last = (1 + u * u + v * v) / 2;
  const cx = (first * v - last * y) / cross;
  const cy = (last * x - first * u) / cross;
  const square = cx * cx + cy * cy - 1;
  if (!(square > 0 && square < STRAIGHT * STRAIGHT)) return { x, y, u, v, cx: 0, cy: 0, radius: 0, turn: 1 };
  const turn = (x - cx) * (v - cy) - (y - cy) * (u - cx) < 0 ? -1 : 1;
  return { x, y, u, v, cx, cy, radius: Math.sqrt(square), turn };
}

/** Adds a geodesic to a canvas's path; the disk's middle is at (left, top), its radius is `scale`. */
export function traceGeodesic(context, arc, left, top, scale) {
  context.moveTo(left + scale * arc.x, top - scale * arc.y);
  if (arc.radius > 0) {
    // a page's second axis points down, so angles and turns change their sign
    const begin = Math.atan2(arc.cy - arc.y, arc.x - arc.cx);
    const end = Math.atan2(arc.cy - arc.v, arc.u - arc.cx);
    context.arc(left + scale * arc.cx, top - scale * arc.cy, scale * arc.radius, begin, end, arc.turn > 0);
  } else {
    context.lineTo(left + scale * arc.u, top - scale * arc.v);
  }
}

/** The same as a piece of an SVG path. */
export function geodesicPath(arc, left, top, scale) {
  const at = (x, y) => `${(left + scale * x).toFixed(1)} ${(top - scale * y).toFixed(1)}`;
  const size = (scale * arc.radius).toFixed(1);
  const way = arc.radius > 0 ? `A${size} ${size} 0 0 ${arc.turn < 0 ? 1 : 0} ` : "L";
  return `M${at(arc.x, arc.y)}${way}${at(arc.u, arc.v)}`;
}
