// What the page shows: buffers, ids, links and columns.
import { shown } from "./page.mjs";

// Where the page's data come from: the server, part by part, or the page itself.

const PART = 1 << 20; // numbers of one answer
const ARRAYS = {
  float64: Float64Array, float32: Float32Array, uint32: Uint32Array, uint16: Uint16Array, uint8: Uint8Array,
};

async function answer(path) {
  const response = await fetch(path);
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Error(told.detail ?? `the server answered ${response.status}`);
}

class Served {
  async about() {
    this.described = await (await answer("api/about")).json();
    return this.described;
  }

  async buffer(name) {
    const { type, length } = this.described.buffers[name];
    const numbers = new ARRAYS[type](length);
    for (let start = 0; start < length; start += PART) {
      const part = await (await answer(`api/buffers/${name}?start=${start}&count=${PART}`)).arrayBuffer();
      numbers.set(new ARRAYS[type](part), start);
    }
    return numbers;
  }

  async list(kind, node, count) {
    return (await answer(`api/nodes/${node}/${kind}?k=${count}`)).json();
  }
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

class Embedded {
  constructor(element) {
    this.held = JSON.parse(element.textContent);
    element.remove();
  }

  async about() {
    return this.held.about;
  }

  async buffer(name) {
    const bytes = fromBase64(this.held.buffers[name]);
    return new ARRAYS[this.held.about.buffers[name].type](bytes.buffer);
  }

  /** Lists were made for some graphs when the page was written. */
  async list(kind, node, count) {
    const width = this.held.about.lists;
    if (!width) throw new Error("This file holds no lists of neighbors; h2hgcn explore finds them.");
    this.lists ??= {};
    this.lists[kind] ??= await Promise.all(["node", "distance", "probability", "linked"].map((part) => this.buffer(`${kind}_${part}`)));
    const [nodes, distances, probabilities, linked] = this.lists[kind];
    const entries = [];
    for (let at = node * width; at < node * width + Math.min(width, count); at += 1) {
      if (Number.isNaN(distances[at])) break;
      const probability = Number.isNaN(probabilities[at]) ? null : probabilities[at];
      entries.push({ node: nodes[at], distance: distances[at], probability, linked: linked[at] === 1 });
    }
    return entries;
  }
}

/** What this page was given: its own data, if it has any. */
export function openSource() {
  const element = document.getElementById("explorer-data");
  return element ? new Embedded(element) : new Served();
}

// The ids of all nodes in two arrays; a million texts of their own would take seconds and a gigabyte.

const decoder = new TextDecoder();
const encoder = new TextEncoder();

const lowered = (byte) => (byte >= 65 && byte <= 90 ? byte + 32 : byte);

export class Ids {
  constructor(text, offsets) {
    this.bytes = text;
    this.offsets = offsets;
    this.count = offsets.length - 1;
  }

  text(node) {
    return decoder.decode(this.bytes.subarray(this.offsets[node], this.offsets[node + 1]));
  }

  /** Nodes whose id is what was typed, begins with it, or has it somewhere, in this order; capitals do not matter. */
  find(typed, limit) {
    const wanted = encoder.encode(typed).map(lowered);
    const found = [[], [], []];
    for (let node = 0; node < this.count && wanted.length; node += 1) {
      const kind = this.#match(node, wanted);
      if (kind >= 0 && found[kind].length < limit) found[kind].push(node);
    }
    return found.flat().slice(0, limit);
  }

  #match(node, wanted) {
    const begin = this.offsets[node];
    const room = this.offsets[node + 1] - begin - wanted.length;
    for (let shift = 0; shift <= room; shift += 1) {
      let same = 0;
      while (same < wanted.length && lowered(this.bytes[begin + shift + same]) === wanted[same]) same += 1;
      if (same === wanted.length) return shift > 0 ? 2 : room > 0 ? 1 : 0;
    }
    return -1;
  }

  /** The node with this very id; -1 if there is none. */
  exactly(id) {
    const wanted = encoder.encode(id);
    for (let node = 0; node < this.count; node += 1) {
      const begin = this.offsets[node];
      if (this.offsets[node + 1] - begin === wanted.length && wanted.every((byte, k) => byte === this.bytes[begin + k])) {
        return node;
      }
    }
    return -1;
  }
}

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

// What is known of every node, column by column, each fetched when it is first wanted.

const NO_VALUE = 0xffff;

export class Columns {
  constructor(described, source) {
    this.described = described;
    this.source = source;
    this.values = [];
    this.coming = [];
  }

  place(name) {
    return this.described.findIndex((column) => column.name === name);
  }

  async load(place) {
    this.coming[place] ??= this.source.buffer(`column_${place}`);
    this.values[place] = await this.coming[place];
    return this.values[place];
  }

  /** The value of a node as a text; null if the column is not here yet. */
  text(place, node) {
    const values = this.values[place];
    if (!values) return null;
    const column = this.described[place];
    if (column.kind === "number") return shown(values[node], column.whole);
    return values[node] === NO_VALUE ? "–" : column.categories[values[node]];
  }

  /** Names and texts of the columns that are here. */
  about(node) {
    return this.described.map(({ name }, place) => [name, this.text(place, node)]).filter(([, text]) => text !== null);
  }
}
