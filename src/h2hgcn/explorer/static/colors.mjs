// Colors of points, and the hierarchy by radius.

// Which colour each point gets, as a place in a table of 256, and the legend that says why.

const TABLE = 256;
const NONE = TABLE - 1; // points without a value
const MISSING = 0xffff; // their code in a column of names

const GREY = "#8a8f98";

/** A column's colours: `shades` (a place in `table` for each point), `table` (css colours) and `legend`. */
export function colouring(column, values, palette, ramp) {
  return column.kind === "category" ? byName(column, values, palette) : byNumber(column, values, ramp);
}

function byName(column, codes, palette) {
  const counts = new Uint32Array(column.categories.length + 1);
  for (const code of codes) counts[code === MISSING ? column.categories.length : code] += 1;
  const ranked = [...column.categories.keys()].sort((first, second) => counts[second] - counts[first] || first - second);
  const coloured = ranked.slice(0, palette.length).sort((first, second) => first - second);
  const shadeOf = new Uint8Array(column.categories.length).fill(NONE);
  coloured.forEach((category, place) => (shadeOf[category] = place));
  const table = new Array(TABLE).fill(GREY);
  coloured.forEach((category, place) => (table[place] = palette[place]));
  const shades = Uint8Array.from(codes, (code) => (code === MISSING ? NONE : shadeOf[code]));
  const entries = coloured
    .map((category, place) => ({ name: column.categories[category], count: counts[category], colour: palette[place], shade: place }))
    .filter((entry) => entry.count > 0); // a class that no point has keeps its colour, and needs no line
  const rest = codes.length - entries.reduce((sum, entry) => sum + entry.count, 0);
  if (rest > 0) {
    const name = counts[column.categories.length] === rest ? "no value" : "all others";
    entries.push({ name, count: rest, colour: GREY, shade: NONE });
  }
  return { shades, table, legend: { kind: "names", entries } };
}

function byNumber(column, values, ramp) {
  const scale = scaleOf(column);
  const shades = Uint8Array.from(values, (value) => (Number.isNaN(value) ? NONE : Math.round(scale.to(value) * (NONE - 1))));
  const table = Array.from({ length: TABLE }, (_, place) => (place === NONE ? GREY : blended(ramp, place / (NONE - 1))));
  const ticks = [0, 0.5, 1].map((share) => scale.from(share));
  return { shades, table, legend: { kind: "ramp", colours: ramp, ticks, logarithmic: scale.logarithmic } };
}

/** From a column's numbers to shares of its range, by logarithms where a few are much larger than most. */
export function scaleOf({ low, middle, high }) {
  const logarithmic = low >= 0 && high > 10 * (middle + 1);
  const bend = logarithmic ? Math.log1p : (value) => value;
  const back = logarithmic ? Math.expm1 : (value) => value;
  const begin = bend(low);
  const width = bend(high) - begin;
  const to = (value) => (width > 0 ? Math.max(0, Math.min(1, (bend(value) - begin) / width)) : 0.5);
  return { logarithmic, to, from: (share) => back(begin + share * width) };
}

/** A colour between those of a ramp. */
export function blended(ramp, share) {
  const place = share * (ramp.length - 1);
  const first = Math.min(ramp.length - 2, Math.floor(place));
  const [from, to] = [channels(ramp[first]), channels(ramp[first + 1])];
  const mixed = from.map((value, k) => Math.round(value + (to[k] - value) * (place - first)));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** Red, green and blue of #rrggbb. */
export function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

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

/** From a node to ever smaller radii, each time to the neighbor with the smallest, until none is smaller. */
export function wayUp(node, links, radii) {
  const way = [node];
  for (let at = node; ; ) {
    let best = at;
    for (const other of links.of(at)) if (radii[other] < radii[best]) best = other;
    if (best === at) return way;
    way.push((at = best));
  }
}
