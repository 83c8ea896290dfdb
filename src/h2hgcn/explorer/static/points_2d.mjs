// The same points without a graphics card: slower, and without smooth rims.
import { moved } from "./frame.mjs";

export class Points2D {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  get name() {
    return "canvas, without WebGL";
  }

  setPoints(near) {
    this.near = near;
    this.seen ??= new Float32Array(near.length);
  }

  setShades(shades) {
    this.shades = shades;
  }

  setFlags(flags) {
    this.flags = flags;
  }

  setTable(colours) {
    this.table = colours;
  }

  draw({ rest, radius, size, selected, thin }) {
    const { canvas, context } = this;
    moved(rest, this.near, this.seen);
    context.clearRect(0, 0, canvas.width, canvas.height);
    for (const [wanted, strength] of selected ? [[0, 0.18], [1, 1]] : [[-1, 0.92]]) {
      context.globalAlpha = strength;
      this.#dots(wanted, radius, size, thin);
    }
  }

  #dots(wanted, radius, size, thin) {
    const { canvas, context, seen, shades, flags } = this;
    for (const shade of new Set(shades)) {
      context.fillStyle = this.table[shade];
      for (let node = 0; node < shades.length; node += thin) {
        if (shades[node] !== shade || (wanted >= 0 && flags[node] !== wanted)) continue;
        const [x, y] = [seen[2 * node], seen[2 * node + 1]];
        const wide = size * (0.35 + 0.65 * Math.max(0, 1 - x * x - y * y));
        context.fillRect(canvas.width / 2 + radius * x - wide / 2, canvas.height / 2 - radius * y - wide / 2, wide, wide);
      }
    }
  }
}
