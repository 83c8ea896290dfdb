// Points on the graphics card, which moves all of them at every frame.
import { channels } from "./colours.mjs";

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
