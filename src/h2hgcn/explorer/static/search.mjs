// Finding a node by its id: a field with a list below it.
import { byId, make } from "./dom.mjs";

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
