// The edges of the graph, and which of them are drawn: those around what is in the middle.

export class Links {
  constructor(offsets, targets) {
    this.offsets = offsets;
    this.targets = targets;
  }

  of(node) {
    return this.targets.subarray(this.offsets[node], this.offsets[node + 1]);
  }
}

const RINGS = 512;

/** Edges as pairs of nodes, `limit` at most, of the nodes seen nearest to the middle. `seen` holds x, y, x, y, ... */
export function edgesAround(links, seen, limit) {
  const { offsets, targets } = links;
  const last = lastRing(offsets, seen, limit);
  const pairs = [];
  for (let node = 0; node < offsets.length - 1 && pairs.length < 2 * limit; node += 1) {
    const own = ringOf(seen, node);
    if (own > last) continue;
    for (let at = offsets[node]; at < offsets[node + 1] && pairs.length < 2 * limit; at += 1) {
      const other = targets[at];
      // an edge whose ends are both near is met twice
      if (node < other || ringOf(seen, other) > last) pairs.push(node, other);
    }
  }
  return Uint32Array.from(pairs);
}

const ringOf = (seen, node) => Math.min(RINGS - 1, Math.floor((seen[2 * node] ** 2 + seen[2 * node + 1] ** 2) * RINGS));

/** The outermost ring whose nodes, with those within, have no more than `limit` edges; the innermost in any case. */
function lastRing(offsets, seen, limit) {
  const degrees = new Float64Array(RINGS);
  for (let node = 0; node < offsets.length - 1; node += 1) degrees[ringOf(seen, node)] += offsets[node + 1] - offsets[node];
  let ring = 0;
  for (let sum = degrees[0]; ring + 1 < RINGS && sum + degrees[ring + 1] <= 2 * limit; ) sum += degrees[++ring];
  return ring;
}
