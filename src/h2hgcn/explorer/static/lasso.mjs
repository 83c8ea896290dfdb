// What is inside a line that somebody drew.

/** Whether (x, y) is inside a polygon x, y, x, y, ... */
export function isInside(polygon, x, y) {
  let inside = false;
  for (let at = 0, before = polygon.length - 2; at < polygon.length; before = at, at += 2) {
    const [u, v, p, q] = [polygon[at], polygon[at + 1], polygon[before], polygon[before + 1]];
    if (v > y !== q > y && x < ((p - u) * (y - v)) / (q - v) + u) inside = !inside;
  }
  return inside;
}

/** The nodes whose place in `seen` (x, y, x, y, ...) is inside. */
export function nodesInside(polygon, seen) {
  const xs = polygon.filter((_, at) => at % 2 === 0);
  const ys = polygon.filter((_, at) => at % 2 === 1);
  const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const found = [];
  for (let at = 0; at < seen.length; at += 2) {
    const [x, y] = [seen[at], seen[at + 1]];
    if (x >= left && x <= right && y >= bottom && y <= top && isInside(polygon, x, y)) found.push(at / 2);
  }
  return found;
}
