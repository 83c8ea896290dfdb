// What stands beside the disk: details, lists, legend, search and selection.
import { histogram } from "./colors.mjs";
import { byId, dot, download, make, makeSvg, say, shown } from "./page.mjs";

// What stands beside the disk about the chosen node.

const BARS = 40;

function described(pairs) {
  return make("dl", {}, ...pairs.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
}

/** The card beside the pointer. */
export function showCard(id, pairs, x, y) {
  const card = byId("card");
  card.replaceChildren(make("strong", {}, id), described(pairs));
  card.hidden = false;
  const room = card.parentElement;
  const left = x + 18 + card.offsetWidth > room.clientWidth ? x - 18 - card.offsetWidth : x + 18;
  const top = Math.max(8, Math.min(y + 14, room.clientHeight - card.offsetHeight - 8));
  card.style.transform = `translate(${Math.max(8, left)}px, ${top}px)`;
}

export function showNode(id, pairs) {
  byId("node").replaceChildren(make("h2", {}, id), described(pairs));
}

export function showNoNode() {
  byId("node").replaceChildren(
    make("p", { class: "quiet" }, "Click a point, or find it by its id. Drag to move, turn the wheel to zoom."),
  );
  for (const id of ["neighbors", "links"]) byId(id).hidden = true;
}

/** A list of nodes; `colourOf` and `nameOf` tell about each, `go` is what a click does. */
export function showList(kind, entries, { nameOf, colourOf, go }) {
  const section = byId(kind);
  const withChance = entries.some((entry) => entry.probability !== null);
  const heads = make(
    "div", { class: "heads", "aria-hidden": "true" },
    make("span"), make("span", { class: "chance" }, withChance ? "probability" : ""), make("span", { class: "far" }, "distance"),
  );
  const items = entries.map((entry) => make("li", {}, listButton(entry, nameOf(entry.node), colourOf(entry.node), go)));
  section.replaceChildren(section.querySelector("h2"), heads, make("ol", { class: "nodes" }, ...items));
  if (!entries.length) section.append(make("p", { class: "quiet" }, "None."));
  section.hidden = false;
}

function listButton({ node, distance, probability, linked }, name, colour, go) {
  const chance = probability === null ? "" : probability.toFixed(probability < 0.0005 ? 5 : 3);
  const spoken = `${name}${linked ? ", linked" : ""}${chance && `, probability ${chance}`}, distance ${shown(distance)}`;
  return make(
    "button", { type: "button", "aria-label": spoken, title: linked ? "linked" : "", onclick: () => go(node) },
    dot(colour), make("span", { class: "name" }, name), make("span", { class: "chance" }, chance),
    make("span", { class: "far" }, distance.toFixed(3)),
  );
}

export function showListProblem(kind, message) {
  const section = byId(kind);
  section.replaceChildren(section.querySelector("h2"), make("p", { class: "quiet" }, message));
  section.hidden = false;
}

/** How many nodes lie at which radius; the chosen one's bar is marked. */
export function showHistogram(radii, radius) {
  if (showHistogram.radii !== radii) Object.assign(showHistogram, { radii, counted: histogram(radii, BARS) });
  const { low, high, counts } = showHistogram.counted;
  const most = Math.max(...counts);
  const own = radius === null || high <= low ? -1 : Math.min(BARS - 1, Math.floor(((radius - low) / (high - low)) * BARS));
  const bars = [...counts].map((count, k) => {
    const height = count ? Math.max(1, (60 * count) / most) : 0;
    const shape = { x: 8 * k, y: 62 - height, width: 7, height, class: k === own ? "bar own" : "bar" };
    return makeSvg("rect", shape, makeSvg("title", {}, `${shown(count)} nodes`));
  });
  const texts = [[0, "start", low], [160, "middle", (low + high) / 2], [320, "end", high]].map(([x, anchor, value]) =>
    makeSvg("text", { x, y: 76, "text-anchor": anchor }, shown(value)));
  const told = `Radii of all nodes, from ${shown(low)} to ${shown(high)}`;
  byId("histogram").replaceChildren(makeSvg("svg", { viewBox: "0 0 320 80", role: "img", "aria-label": told }, ...bars, ...texts));
  byId("depth").hidden = false;
}

/** The way from a node to ever smaller radii. */
export function showWay(way, { nameOf, colourOf, radiusOf, go }) {
  const room = byId("way");
  if (way.length < 2) {
    const text = way.length ? "No neighbor lies nearer to the middle." : "";
    room.replaceChildren(make("p", { class: "quiet" }, text));
    return;
  }
  const items = way.map((node) =>
    make("li", {}, make(
      "button", { type: "button", onclick: () => go(node) },
      dot(colourOf(node)), make("span", { class: "name" }, nameOf(node)), make("span", { class: "chance" }),
      make("span", { class: "far" }, shown(radiusOf(node))),
    )));
  const heads = make("div", { class: "heads" }, make("span", {}, "Way up, to ever smaller radii"), make("span", { class: "far" }, "radius"));
  room.replaceChildren(heads, make("ol", { class: "nodes" }, ...items));
}

// What the colours mean. A name of the legend selects the points that have it.

/** `select(shade)` is called for the name that was clicked. */
export function showLegend(legend, select) {
  const room = byId("legend");
  if (legend.kind === "ramp") {
    const bar = make("div", { class: "ramp", "aria-hidden": "true" });
    bar.style.background = `linear-gradient(to right, ${legend.colours.join(", ")})`;
    const ticks = legend.ticks.map((value) => make("span", {}, shown(value)));
    room.replaceChildren(bar, make("div", { class: "ticks" }, ...ticks));
    if (legend.logarithmic) room.append(make("small", { class: "quiet" }, "by its logarithm"));
    return;
  }
  const items = legend.entries.map(({ name, count, colour, shade }) => {
    const button = make(
      "button",
      { type: "button", "aria-pressed": "false", title: "Select these", onclick: () => select(shade, name, button) },
      dot(colour), make("span", {}, name), make("small", {}, shown(count)),
    );
    return make("li", {}, button);
  });
  room.replaceChildren(make("ul", {}, ...items));
}

/** Marks the one name that is selected, or none. */
export function pressLegend(button) {
  for (const other of byId("legend").querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
}

// Finding a node by its id: a field with a list below it.

const SHOWN = 8;

/** `ids` finds nodes, `labelOf(node)` tells what stands beside them, `go(node)` goes there. */
export function makeSearch(ids, labelOf, go) {
  const field = byId("search");
  const list = byId("found");
  let nodes = [];
  let chosen = 0;

  function show() {
    nodes = ids.find(field.value.trim(), SHOWN);
    chosen = 0;
    list.replaceChildren(...nodes.map((node, k) => option(node, k)));
    if (!nodes.length && field.value.trim()) list.append(make("li", { class: "quiet" }, "no such id"));
    open(list.childElementCount > 0);
    mark();
  }

  function option(node, k) {
    const attributes = { role: "option", id: `found-${k}`, onpointerdown: (event) => event.preventDefault(), onclick: () => take(k) };
    return make("li", attributes, ids.text(node), make("small", {}, labelOf(node)));
  }

  function mark() {
    [...list.children].forEach((item, k) => item.setAttribute("aria-selected", String(k === chosen && nodes.length > 0)));
    if (nodes.length) field.setAttribute("aria-activedescendant", `found-${chosen}`);
    else field.removeAttribute("aria-activedescendant");
  }

  function open(wanted) {
    list.hidden = !wanted;
    field.setAttribute("aria-expanded", String(wanted));
  }

  function take(k) {
    if (!nodes.length) return;
    field.value = ids.text(nodes[k]);
    open(false);
    go(nodes[k]);
  }

  field.addEventListener("input", show);
  field.addEventListener("focus", () => field.value && show());
  field.addEventListener("blur", () => open(false));
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : nodes.length - 1)) % Math.max(1, nodes.length);
      mark();
    } else if (event.key === "Enter") take(chosen);
    else if (event.key === "Escape") {
      if (list.hidden) byId("stage").focus();
      open(false);
    } else return;
    event.preventDefault();
  });
  field.disabled = false;
}

// Which nodes are selected, and what can be done with them.

export class Selection {
  constructor(stage, ids) {
    this.stage = stage;
    this.ids = ids;
    this.nodes = [];
    byId("save-ids").addEventListener("click", () => download(new Blob([this.text()], { type: "text/plain" }), "ids.txt"));
    byId("copy-ids").addEventListener("click", () => this.#copy());
    byId("clear").addEventListener("click", () => this.set([]));
  }

  set(nodes, what = "selected") {
    const flags = new Uint8Array(this.stage.frame.count);
    for (const node of nodes) flags[node] = 1;
    this.nodes = nodes;
    this.stage.setSelection(flags, nodes.length > 0);
    byId("selection").hidden = nodes.length === 0;
    byId("selected").textContent = `${shown(nodes.length)} of ${shown(flags.length)} nodes ${what}`;
    say(nodes.length ? `${nodes.length} nodes ${what}` : "nothing selected");
  }

  /** The ids, one in a line. */
  text() {
    return this.nodes.map((node) => `${this.ids.text(node)}\n`).join("");
  }

  async #copy() {
    try {
      await navigator.clipboard.writeText(this.text());
      say(`${this.nodes.length} ids copied`);
    } catch {
      say("the browser does not let this page copy; save the ids instead");
    }
  }
}
