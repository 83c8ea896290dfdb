// How deep nodes lie: counts by radius, and the way up from a node.

/** Hyperbolic distances of points x, y, x, y, ... to the middle of the disk. */
export function radiiOf(points) {
  return Float64Array.from({ length: points.length / 2 }, (_, k) => 2 * Math.atanh(Math.min(1 - Number.EPSILON, Math.hypot(points[2 * k], points[2 * k + 1]))));
}

/** How many numbers fall into each of `bins` equal parts of their range. */
export function histogram(values, bins) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const counts = new Uint32Array(bins);
  const width = high - low;
  for (const value of values) counts[width > 0 ? Math.min(bins - 1, Math.floor(((value - low) / width) * bins)) : 0] += 1;
  return { low, high, counts };
}

/** From a node to ever smaller radii, each time to the neighbour with the smallest, until none is smaller. */
export function wayUp(node, links, radii) {
  const way = [node];
  for (let at = node; ; ) {
    let best = at;
    for (const other of links.of(at)) if (radii[other] < radii[best]) best = other;
    if (best === at) return way;
    way.push((at = best));
  }
}
