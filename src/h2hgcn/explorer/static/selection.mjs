// Which nodes are selected, and what can be done with them.
import { byId, download, say, shown } from "./dom.mjs";

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
