// Which point is under the pointer, without looking at all of them: the square around the disk in cells.
import { apply, inverse } from "./view.mjs";

const CELLS = 256; // in a row
const AROUND = 16; // places at which the rim of the pointer's reach is looked at

const cellOf = (x) => Math.max(0, Math.min(CELLS - 1, Math.floor(((x + 1) / 2) * CELLS)));

export class Grid {
  /** `near` holds x, y, x, y, ...; the grid is that of the moment. */
  constructor(near) {
    const count = near.length / 2;
    const cells = new Uint32Array(count);
    this.near = near;
    this.begins = new Uint32Array(CELLS * CELLS + 1);
    for (let node = 0; node < count; node += 1) {
      cells[node] = cellOf(near[2 * node + 1]) * CELLS + cellOf(near[2 * node]);
      this.begins[cells[node] + 1] += 1;
    }
    for (let cell = 0; cell < CELLS * CELLS; cell += 1) this.begins[cell + 1] += this.begins[cell];
    const next = this.begins.slice();
    this.nodes = new Uint32Array(count);
    for (let node = 0; node < count; node += 1) this.nodes[next[cells[node]]++] = node;
  }

  /** The node seen nearest to (x, y) and within `radius` of it; -1 if there is none. `rest` is the frame's. */
  nearest(rest, x, y, radius) {
    const [left, bottom, right, top] = this.#box(inverse(rest), x, y, radius);
    let best = -1;
    let least = radius * radius;
    for (let row = cellOf(bottom); row <= cellOf(top); row += 1) {
      const last = this.begins[row * CELLS + cellOf(right) + 1];
      for (let at = this.begins[row * CELLS + cellOf(left)]; at < last; at += 1) {
        const node = this.nodes[at];
        const [u, v] = apply(rest, this.near[2 * node], this.near[2 * node + 1]);
        const far = (u - x) ** 2 + (v - y) ** 2;
        if (far < least || (far === least && node < best)) [best, least] = [node, far];
      }
    }
    return best;
  }

  /** Circles come from circles: a box around what the pointer reaches, before the view moved it. */
  #box(back, x, y, radius) {
    const box = [1, 1, -1, -1];
    for (let k = 0; k < AROUND; k += 1) {
      const u = x + 1.1 * radius * Math.cos((2 * Math.PI * k) / AROUND);
      const v = y + 1.1 * radius * Math.sin((2 * Math.PI * k) / AROUND);
      const shrink = Math.min(1, 1 / Math.hypot(u, v));
      const [p, q] = apply(back, u * shrink, v * shrink);
      box[0] = Math.min(box[0], p);
      box[1] = Math.min(box[1], q);
      box[2] = Math.max(box[2], p);
      box[3] = Math.max(box[3], q);
    }
    return box;
  }
}
