// Points: where they are, and how they are drawn.
import { channels } from "./colors.mjs";
import { apply, inverse, moved } from "./view.mjs";

// Which point is under the pointer, without looking at all of them: the square around the disk in cells.

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

// The same points without a graphics card: slower, and without smooth rims.

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

// Points on the graphics card, which moves all of them at every frame.

const VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec2 point;
layout(location = 1) in float shade;
layout(location = 2) in float flag;
uniform vec2 a, b, scale;
uniform float size;
uniform float wanted;
uniform sampler2D table;
out vec3 colour;
flat out float drawn;

void main() {
  vec2 top = vec2(a.x * point.x - a.y * point.y, a.x * point.y + a.y * point.x) + b;
  vec2 under = vec2(b.x * point.x + b.y * point.y, b.x * point.y - b.y * point.x) + vec2(a.x, -a.y);
  vec2 seen = vec2(dot(top, under), top.y * under.x - top.x * under.y) / dot(under, under);
  float depth = max(0.0, 1.0 - dot(seen, seen));
  drawn = size * (0.35 + 0.65 * depth);
  gl_PointSize = drawn + 1.0;
  bool shown = wanted < 0.0 || abs(flag - wanted) < 0.5;
  gl_Position = shown ? vec4(seen * scale, 0.0, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
  colour = texelFetch(table, ivec2(int(shade + 0.5), 0), 0).rgb;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec3 colour;
flat in float drawn;
uniform vec3 ground;
uniform float strength;
out vec4 result;

void main() {
  float away = length(gl_PointCoord - 0.5) * (drawn + 1.0);
  float inside = clamp(0.5 * drawn - away + 0.5, 0.0, 1.0);
  if (inside <= 0.0) discard;
  float rim = drawn > 4.0 ? clamp(away - 0.5 * drawn + 1.3, 0.0, 1.0) : 0.0;
  float alpha = inside * strength;
  result = vec4(mix(colour, ground, 0.55 * rim) * alpha, alpha);
}`;

export class PointsGL {
  constructor(canvas) {
    this.canvas = canvas;
    this.gl = canvas.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true });
    if (!this.gl) throw new Error("no WebGL 2");
    this.given = {};
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => this.#restore());
    this.#prepare();
  }

  /** The name of what draws, for those who measure. */
  get name() {
    const known = this.gl.getExtension("WEBGL_debug_renderer_info");
    return this.gl.getParameter(known ? known.UNMASKED_RENDERER_WEBGL : this.gl.RENDERER);
  }

  setPoints(near) {
    this.#fill(0, near, 2, this.gl.FLOAT, this.gl.DYNAMIC_DRAW);
    this.count = near.length / 2;
  }

  setShades(shades) {
    this.#fill(1, shades, 1, this.gl.UNSIGNED_BYTE, this.gl.STATIC_DRAW);
  }

  setFlags(flags) {
    this.#fill(2, flags, 1, this.gl.UNSIGNED_BYTE, this.gl.DYNAMIC_DRAW);
  }

  setTable(colours) {
    const { gl } = this;
    this.given.table = colours;
    const bytes = Uint8Array.from(colours.flatMap((colour) => [...channels(colour), 255]));
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, colours.length, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  }

  /** `radius` is the disk's, in pixels of the canvas; with `selected`, what is not selected is faint; one point of
   * `thin` is drawn. */
  draw({ rest, radius, size, ground, selected, thin }) {
    const { gl, canvas, places } = this;
    for (const place of [0, 1, 2]) this.#point(place, thin);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(places.a, rest[0], rest[1]);
    gl.uniform2f(places.b, rest[2], rest[3]);
    gl.uniform2f(places.scale, (2 * radius) / canvas.width, (2 * radius) / canvas.height);
    gl.uniform1f(places.size, size);
    gl.uniform3f(places.ground, ...channels(ground).map((value) => value / 255));
    for (const [wanted, strength] of selected ? [[0, 0.18], [1, 1]] : [[-1, 0.92]]) {
      gl.uniform1f(places.wanted, wanted);
      gl.uniform1f(places.strength, strength);
      gl.drawArrays(gl.POINTS, 0, Math.ceil(this.count / thin));
    }
  }

  #prepare() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    this.places = {};
    for (const name of ["a", "b", "scale", "size", "ground", "strength", "wanted"]) {
      this.places[name] = gl.getUniformLocation(program, name);
    }
    this.stores = [0, 1, 2].map(() => gl.createBuffer());
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.clearColor(0, 0, 0, 0);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  #fill(place, numbers, width, type, usage) {
    const { gl } = this;
    this.given[place] = [numbers, width, type, usage];
    gl.bindBuffer(gl.ARRAY_BUFFER, this.stores[place]);
    gl.bufferData(gl.ARRAY_BUFFER, numbers, usage);
    gl.enableVertexAttribArray(place);
  }

  /** Every so manieth entry of a buffer: its stride says so, and nothing is copied. */
  #point(place, thin) {
    const { gl } = this;
    const [numbers, width, type] = this.given[place];
    gl.bindBuffer(gl.ARRAY_BUFFER, this.stores[place]);
    gl.vertexAttribPointer(place, width, type, false, thin * width * numbers.BYTES_PER_ELEMENT, 0);
  }

  /** A card may lose everything, on a laptop that slept, say; it gets it again. */
  #restore() {
    this.#prepare();
    for (const place of [0, 1, 2]) if (this.given[place]) this.#fill(place, ...this.given[place]);
    if (this.given.table) this.setTable(this.given.table);
    this.canvas.dispatchEvent(new Event("restored"));
  }
}
