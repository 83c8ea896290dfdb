// The disk on the page, and how fast it is redrawn.
import { edgesAround } from "./data.mjs";
import { drawAbove, drawBelow } from "./layers.mjs";
import { Grid, Points2D, PointsGL } from "./points.mjs";
import { Frame, IDENTITY, LEAST_ZOOM, MOST_ZOOM, compose, fittingZoom, inverse, reach } from "./view.mjs";

// How many points are drawn while something moves: all of them, or every second, fourth, ... where that is too slow.

const SLOW = 45; // milliseconds of a frame that is too long
const QUICK = 20; // of one that leaves room for more
const FEW = 20_000; // so many points are always drawn
const RESTING = 160; // milliseconds without a move after which all are drawn again
const MOST = 31; // a buffer's stride ends at 255 bytes

export class Pace {
  /** `again` draws everything, once it is still. */
  constructor(count, again) {
    this.count = count;
    this.again = again;
    this.thin = 1;
    this.slow = 0;
    this.quick = 0;
    this.moving = false;
  }

  /** One of so many points is to be drawn now. */
  get share() {
    return this.moving ? this.thin : 1;
  }

  /** Is told of every move. */
  move() {
    if (this.count <= FEW) return;
    this.moving = true;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      this.moving = false;
      if (this.thin > 1) this.again();
    }, RESTING);
  }

  /** Is told of every frame that was drawn: the next one comes late if it took long. */
  drawn() {
    if (!this.moving) return;
    const began = performance.now();
    requestAnimationFrame(() => this.took(performance.now() - began));
  }

  /** One slow frame may be an accident, two in a row are not; to draw more takes a while of quick ones. */
  took(time) {
    this.slow = time > SLOW ? this.slow + 1 : 0;
    this.quick = time > SLOW ? 0 : this.quick + (time < QUICK);
    if (this.slow >= 2) {
      this.thin = Math.min(MOST, 2 * this.thin);
      this.slow = 0;
    } else if (this.quick >= 30) {
      this.thin = Math.ceil(this.thin / 2);
      this.quick = 0;
    }
  }
}

// The disk on the page: what is seen of it, and how it gets from one view to another.

const MOST_EDGES = 2500;
const MARGIN = 20;
const STEP = 0.3; // so far a view may go before other edges are chosen
const PICK = 10; // pixels between the pointer and a point that it means

export class Stage {
  constructor(root, points) {
    const [below, middle, above] = root.querySelectorAll("canvas");
    this.root = root;
    this.below = below.getContext("2d");
    this.above = above.getContext("2d");
    this.renderer = rendererFor(middle);
    this.renderer.setFlags(new Uint8Array(points.length / 2));
    this.scene = { edges: [], ownEdges: [], way: [], named: [], focus: -1, hover: -1, lasso: null };
    this.onmove = () => {};
    this.pace = new Pace(points.length / 2, () => this.ask());
    this.setPoints(points);
    middle.addEventListener("restored", () => this.ask());
    new ResizeObserver(() => this.#resize()).observe(root);
    this.#resize();
  }

  /** Other places of the same nodes, seen from the middle. */
  setPoints(points) {
    this.frame = this.scene.frame = new Frame(points);
    this.renderer.setPoints(this.frame.near);
    this.grid = this.edgesFrom = null;
    this.home = fittingZoom(points);
    this.show(IDENTITY, this.home);
  }

  /** Draws at the next frame. */
  ask() {
    this.asked ??= requestAnimationFrame(() => this.draw());
  }

  show(view, zoom = this.zoom) {
    this.view = view;
    this.zoom = Math.max(LEAST_ZOOM, Math.min(MOST_ZOOM, zoom));
    this.onmove();
    this.pace.move();
    this.ask();
  }

  /** The middle and the radius of the disk in pixels of the page. */
  get place() {
    const { clientWidth: width, clientHeight: height } = this.root;
    return { left: width / 2, top: height / 2, scale: Math.max(20, Math.min(width, height) / 2 - MARGIN) * this.zoom };
  }

  /** A place of the page as a point of the disk, or beyond it. */
  pointAt(event) {
    const box = this.root.getBoundingClientRect();
    const { left, top, scale } = this.place;
    return [(event.clientX - box.left - left) / scale, (top - (event.clientY - box.top)) / scale];
  }

  nodeAt(x, y) {
    this.#follow();
    this.grid ??= new Grid(this.frame.near);
    return this.grid.nearest(this.frame.rest(this.view), x, y, PICK / this.place.scale);
  }

  /** Where all nodes are seen. */
  seen() {
    this.#follow();
    this.places ??= new Float32Array(2 * this.frame.count);
    this.frame.allSeen(this.view, this.places);
    return this.places;
  }

  setLinks(links) {
    this.links = links;
    this.edgesFrom = null;
    this.ask();
  }

  setLook(look) {
    this.look = look;
    this.ask();
  }

  /** The width of a point in the middle. */
  get dot() {
    const room = Math.min(1, this.place.scale / this.zoom / 320);
    return Math.max(3, (16 - 2.5 * Math.log10(this.frame.count)) * room) * Math.max(1, this.zoom) ** 0.4;
  }

  draw() {
    if (this.asked) cancelAnimationFrame(this.asked);
    this.asked = null;
    if (!this.look || !this.shaded) return;
    this.#follow();
    this.#chooseEdges();
    const scene = Object.assign(this.scene, { view: this.view, dot: this.dot });
    for (const [context, paint] of [[this.below, drawBelow], [this.above, drawAbove]]) {
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, context.canvas.width, context.canvas.height);
      context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      paint(context, this.place, scene, this.look);
    }
    this.renderer.draw({
      rest: this.frame.rest(this.view), radius: this.place.scale * this.ratio, size: this.dot * this.ratio,
      ground: this.look.raised, selected: this.selected, thin: this.pace.share,
    });
    this.pace.drawn();
    this.root.dataset.thin = this.pace.share; // for those who measure
  }

  setColours({ shades, table }) {
    this.renderer.setShades(shades);
    this.renderer.setTable(table);
    this.shaded = true;
    this.ask();
  }

  setSelection(flags, some) {
    this.renderer.setFlags(flags);
    this.selected = this.scene.selected = some;
    this.ask();
  }

  #follow() {
    if (!this.frame.follow(this.view)) return;
    this.renderer.setPoints(this.frame.near);
    this.grid = null;
  }

  #chooseEdges() {
    if (!this.links || (this.edgesFrom && reach(compose(this.view, inverse(this.edgesFrom))) < STEP)) return;
    this.edgesFrom = this.view;
    this.scene.edges = edgesAround(this.links, this.seen(), MOST_EDGES);
  }

  #resize() {
    this.ratio = window.devicePixelRatio || 1;
    for (const canvas of this.root.querySelectorAll("canvas")) {
      canvas.width = Math.max(1, Math.round(this.root.clientWidth * this.ratio));
      canvas.height = Math.max(1, Math.round(this.root.clientHeight * this.ratio));
    }
    this.draw();
  }
}

function rendererFor(canvas) {
  try {
    return new PointsGL(canvas);
  } catch {
    return new Points2D(canvas);
  }
}
