// What the colours mean. A name of the legend selects the points that have it.
import { byId, dot, make, shown } from "./dom.mjs";

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
