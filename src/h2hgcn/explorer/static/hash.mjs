// A link that restores what is seen.
import { normalized } from "./view.mjs";

export const LEAST_ZOOM = 0.5;
export const MOST_ZOOM = 60;

/** The part of an address after #. Numbers are written in full, so that the view comes back to the last bit. */
export function written({ view, zoom, column, node, picture }) {
  const parts = [["view", view.join(",")], ["zoom", zoom]];
  if (column) parts.push(["colour", column]);
  if (picture) parts.push(["picture", picture]);
  if (node !== null && node !== undefined) parts.push(["node", node]);
  return `#${parts.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
}

/** What such an address says; whatever makes no sense is left out. */
export function read(hash) {
  const found = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  return {
    view: viewFrom(found.get("view")),
    zoom: zoomFrom(found.get("zoom")),
    column: found.get("colour"),
    node: found.get("node"),
    picture: found.get("picture"),
  };
}

function viewFrom(text) {
  const numbers = (text ?? "").split(",").map(Number);
  const isView = text && numbers.length === 4 && numbers.every((value) => Math.abs(value) < 1e9) && (numbers[0] || numbers[1]);
  return isView ? normalized(numbers) : null;
}

function zoomFrom(text) {
  const zoom = Number(text);
  return text && Number.isFinite(zoom) ? Math.max(LEAST_ZOOM, Math.min(MOST_ZOOM, zoom)) : null;
}
