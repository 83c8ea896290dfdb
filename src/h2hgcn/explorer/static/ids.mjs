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
