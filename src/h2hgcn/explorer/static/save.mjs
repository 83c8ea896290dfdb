// The picture as a file.
import { geodesicPath } from "./geodesic.mjs";
import { arcsOf, pairsAlong } from "./layers.mjs";

const MOST_CIRCLES = 100_000;

/** The three layers as one PNG. */
export function pngOf(stage) {
  const [below, , above] = stage.root.querySelectorAll("canvas");
  const canvas = document.createElement("canvas");
  canvas.width = below.width;
  canvas.height = below.height;
  const context = canvas.getContext("2d");
  context.fillStyle = stage.look.ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  stage.pace.moving = false;
  stage.draw(); // what a card has drawn is gone when the frame is over
  for (const layer of [below, stage.renderer.canvas, above]) context.drawImage(layer, 0, 0);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Disk, edges, points and the chosen node's name as SVG; of very many points those nearest to the middle. */
export function svgOf(stage, { shades, table }) {
  const { left, top, scale } = stage.place;
  const { scene, look } = stage;
  const path = (pairs, colour, width, strength) => {
    const d = arcsOf(pairs, scene).map((arc) => geodesicPath(arc, left, top, scale)).join("");
    return d && `<path d="${d}" fill="none" stroke="${colour}" stroke-width="${width}" opacity="${strength}"/>`;
  };
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${2 * left} ${2 * top}" width="${2 * left}" height="${2 * top}">`,
    `<rect width="100%" height="100%" fill="${look.ground}"/>`,
    `<circle cx="${left}" cy="${top}" r="${scale}" fill="${look.raised}" stroke="${look.quiet}"/>`,
    path(scene.edges, look.quiet, 0.8, 0.3),
    path(scene.ownEdges, look.accent, 1.5, 0.8),
    path(pairsAlong(scene.way), look.mark, 2.2, 0.95),
    ...circles(stage, shades, table),
    nameOfFocus(stage),
    "</svg>",
  ];
  return new Blob([parts.filter(Boolean).join("\n")], { type: "image/svg+xml" });
}

function circles(stage, shades, table) {
  const { left, top, scale } = stage.place;
  const seen = stage.seen();
  const groups = new Map();
  for (const node of nearestNodes(seen)) {
    const [x, y] = [seen[2 * node], seen[2 * node + 1]];
    const radius = (stage.dot / 2) * (1 - 0.65 * Math.min(1, x * x + y * y));
    const circle = `<circle cx="${(left + scale * x).toFixed(1)}" cy="${(top - scale * y).toFixed(1)}" r="${radius.toFixed(1)}"/>`;
    const colour = table[shades[node]];
    if (!groups.has(colour)) groups.set(colour, []);
    groups.get(colour).push(circle);
  }
  return [...groups].map(([colour, all]) => `<g fill="${colour}">${all.join("")}</g>`);
}

function nearestNodes(seen) {
  const far = (node) => seen[2 * node] ** 2 + seen[2 * node + 1] ** 2;
  const nodes = Array.from({ length: seen.length / 2 }, (_, node) => node);
  return nodes.length <= MOST_CIRCLES ? nodes : nodes.sort((one, other) => far(one) - far(other)).slice(0, MOST_CIRCLES);
}

function nameOfFocus(stage) {
  const { focus, name, frame } = stage.scene;
  if (focus < 0 || !name) return "";
  const { left, top, scale } = stage.place;
  const [x, y] = frame.seen(stage.view, focus);
  const at = `x="${(left + scale * x + stage.dot / 2 + 7).toFixed(1)}" y="${(top - scale * y + 5).toFixed(1)}"`;
  return `<text ${at} font-family="sans-serif" font-size="14" font-weight="600" fill="${stage.look.text}">${escaped(name(focus))}</text>`;
}

// control characters have no place in XML at all
function escaped(text) {
  const signs = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (sign) => signs[sign]).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
}
