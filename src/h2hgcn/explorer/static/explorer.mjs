// One embedding on the page: what is chosen, colored, selected and seen.
import { colouring, radiiOf, wayUp } from "./colors.mjs";
import { walkTo, walkToNode } from "./input.mjs";
import { byId, say } from "./page.mjs";
import {
  Selection, pressLegend, showCard, showHistogram, showLegend, showList, showListProblem, showNoNode, showNode,
  showWay,
} from "./panel.mjs";
import { IDENTITY, read, written } from "./view.mjs";

// What is inside a line that somebody drew.

/** Whether (x, y) is inside a polygon x, y, x, y, ... */
export function isInside(polygon, x, y) {
  let inside = false;
  for (let at = 0, before = polygon.length - 2; at < polygon.length; before = at, at += 2) {
    const [u, v, p, q] = [polygon[at], polygon[at + 1], polygon[before], polygon[before + 1]];
    if (v > y !== q > y && x < ((p - u) * (y - v)) / (q - v) + u) inside = !inside;
  }
  return inside;
}

/** The nodes whose place in `seen` (x, y, x, y, ...) is inside. */
export function nodesInside(polygon, seen) {
  const xs = polygon.filter((_, at) => at % 2 === 0);
  const ys = polygon.filter((_, at) => at % 2 === 1);
  const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const found = [];
  for (let at = 0; at < seen.length; at += 2) {
    const [x, y] = [seen[at], seen[at + 1]];
    if (x >= left && x <= right && y >= bottom && y <= top && isInside(polygon, x, y)) found.push(at / 2);
  }
  return found;
}

// One embedding on the page: what is chosen, coloured, selected and seen.

const LISTED = 10;

export class Explorer {
  constructor(about, source, columns, stage) {
    Object.assign(this, { about, source, columns, stage });
    this.stage.onmove = () => this.#rememberSoon();
  }

  /** Shows the nodes where the layout or the projection has them. */
  async showPicture(name) {
    const points = await this.source.buffer(name === "layout" ? "layout" : "points");
    this.picture = name;
    this.radii = radiiOf(points);
    byId("picture").value = name;
    byId("note").textContent = name === "layout" ? this.about.layout.note : this.about.note;
    this.stage.setPoints(points);
    if (!this.ids) return;
    const { focus } = this.stage.scene;
    if (focus >= 0) this.choose(focus, false);
    else showHistogram(this.radii, null);
    this.#rememberSoon();
  }

  /** Ids and edges arrive after the first picture. */
  complete(ids, links) {
    Object.assign(this, { ids, links });
    this.selection = new Selection(this.stage, ids);
    this.stage.scene.name = (node) => ids.text(node);
    if (links) this.stage.setLinks(links);
    showHistogram(this.radii, null);
  }

  async colourBy(place) {
    const values = await this.columns.load(place);
    this.colours = colouring(this.columns.described[place], values, this.about.palette, this.about.ramp);
    this.column = place;
    byId("colour").value = String(place);
    this.stage.setColours(this.colours);
    showLegend(this.colours.legend, (shade, name, button) => this.#selectShade(shade, name, button));
    if (this.ids && this.stage.scene.focus >= 0) this.#tell(this.stage.scene.focus);
    this.#rememberSoon();
  }

  /** Chooses a node, goes there, and tells all about it. */
  choose(node, walk = true) {
    if (!this.ids) return;
    const { scene } = this.stage;
    scene.focus = node;
    scene.way = this.links ? wayUp(node, this.links, this.radii) : [];
    scene.named = this.links ? [...this.links.of(node)] : [];
    scene.ownEdges = scene.named.flatMap((other) => [node, other]);
    this.#tell(node);
    const arrive = () => say(`Centered on ${this.ids.text(node)}: ${spoken(this.#facts(node))}`);
    if (walk) walkToNode(this.stage, node, arrive);
    else this.stage.ask();
    this.#rememberSoon();
  }

  clear() {
    Object.assign(this.stage.scene, { focus: -1, way: [], named: [], ownEdges: [] });
    showNoNode();
    if (this.ids) {
      showWay([], this.#callbacks());
      showHistogram(this.radii, null);
      this.selection.set([]);
      pressLegend(null);
    }
    this.stage.ask();
    this.#rememberSoon();
  }

  home() {
    this.stage.show(this.stage.view, this.stage.home);
    walkTo(this.stage, 0, 0, () => {
      this.stage.show(IDENTITY, this.stage.home);
      say("Back at the beginning");
    });
  }

  hover(node, event) {
    const { scene, root } = this.stage;
    root.classList.toggle("pointing", node >= 0 && !this.stage.lassoing);
    if (node < 0 || !this.ids) byId("card").hidden = true;
    else {
      const box = root.getBoundingClientRect();
      showCard(this.ids.text(node), this.#facts(node), event.clientX - box.left, event.clientY - box.top);
    }
    if (scene.hover !== node) {
      scene.hover = node;
      this.stage.ask();
    }
  }

  lasso(line) {
    if (!this.selection) return;
    pressLegend(null);
    this.selection.set(nodesInside(line, this.stage.seen()));
  }

  /** What the address says, if it says something. */
  async restore() {
    const { view, zoom, column, node, picture } = read(location.hash);
    const wanted = this.about.layout && picture !== "projection" ? "layout" : "projection";
    if (wanted !== this.picture) await this.showPicture(wanted);
    const place = column === null ? -1 : this.columns.place(column);
    if (place >= 0 && place !== this.column) await this.colourBy(place);
    if (view) this.stage.show(view, zoom ?? this.stage.home);
    const chosen = node === null ? -1 : this.ids.exactly(node);
    if (chosen >= 0) this.choose(chosen, !view);
  }

  /** The address of what is seen. */
  address() {
    const { focus } = this.stage.scene;
    const node = focus >= 0 ? this.ids.text(focus) : null;
    const column = this.columns.described[this.column]?.name;
    const picture = this.about.layout && this.picture === "projection" ? this.picture : null;
    return written({ view: this.stage.view, zoom: this.stage.zoom, column, node, picture });
  }

  #rememberSoon() {
    if (!this.ids) return;
    clearTimeout(this.remembering);
    this.remembering = setTimeout(() => history.replaceState(null, "", this.address()), 250);
  }

  #facts(node) {
    return this.columns.about(node);
  }

  #callbacks() {
    return {
      nameOf: (node) => this.ids.text(node),
      colourOf: (node) => this.colours.table[this.colours.shades[node]],
      radiusOf: (node) => this.radii[node],
      go: (node) => this.choose(node),
    };
  }

  #tell(node) {
    showNode(this.ids.text(node), this.#facts(node));
    showHistogram(this.radii, this.radii[node]);
    showWay(this.stage.scene.way, this.#callbacks());
    this.#list("neighbors", node);
    if (this.about.missing_links) this.#list("links", node);
  }

  async #list(kind, node) {
    try {
      const entries = await this.source.list(kind, node, LISTED);
      if (this.stage.scene.focus === node) showList(kind, entries, this.#callbacks());
    } catch (problem) {
      if (this.stage.scene.focus === node) showListProblem(kind, problem.message);
    }
  }

  #selectShade(shade, name, button) {
    if (!this.selection) return;
    const again = button.getAttribute("aria-pressed") === "true";
    pressLegend(again ? null : button);
    const nodes = [];
    if (!again) this.colours.shades.forEach((own, node) => own === shade && nodes.push(node));
    this.selection.set(nodes, `are ${name}`);
  }
}

const spoken = (facts) => facts.map(([name, text]) => `${name} ${text}`).join(", ");
