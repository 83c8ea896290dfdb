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
    if (!width) throw new Error("This file holds no lists of neighbours; h2hgcn explore finds them.");
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
