// What is drawn below and above the points, and pictures to save.
import { geodesic, geodesicPath, traceGeodesic } from "./geodesic.mjs";
import { apply } from "./view.mjs";

// What is drawn below the points and above them: the disk, edges as geodesics, and marks with names.

const NAMED = 8; // neighbors of the chosen node whose ids are written

/** The disk and the edges; `look` has colours, `place` the middle (left, top) and the disk's radius (scale). */
export function drawBelow(context, place, scene, look) {
  const { left, top, scale } = place;
  context.fillStyle = look.raised;
  context.beginPath();
  context.arc(left, top, scale, 0, 2 * Math.PI);
  context.fill();
  drawRings(context, place, look);
  drawOrigin(context, place, scene, look);
  strokeEdges(context, place, scene, scene.edges, look.quiet, scene.selected ? 0.12 : 0.28, 0.8);
  context.strokeStyle = look.quiet;
  context.lineWidth = 1.25;
  context.beginPath();
  context.arc(left, top, scale, 0, 2 * Math.PI);
  context.stroke();
}

/** Circles at hyperbolic distances 1, 2, 3, ... of the middle. */
function drawRings(context, { left, top, scale }, look) {
  context.font = look.small;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let distance = 1; distance <= 5; distance += 1) {
    const radius = scale * Math.tanh(distance / 2);
    context.strokeStyle = look.rule;
    context.lineWidth = 1;
    context.beginPath();
    context.arc(left, top, radius, 0, 2 * Math.PI);
    context.stroke();
    if (scale - radius > 14) haloed(context, String(distance), left, top + radius, look.raised, look.quiet);
  }
}

/** A cross where the middle of the embedding is. */
function drawOrigin(context, { left, top, scale }, { view }, look) {
  const [x, y] = apply(view, 0, 0);
  const [u, v] = [left + scale * x, top - scale * y];
  context.strokeStyle = look.quiet;
  context.lineWidth = 1;
  context.beginPath();
  for (const [dx, dy] of [[6, 0], [0, 6]]) {
    context.moveTo(u - dx, v - dy);
    context.lineTo(u + dx, v + dy);
  }
  context.stroke();
}

export function pairsAlong(way) {
  return way.slice(1).flatMap((node, k) => [way[k], node]);
}

/** The geodesics of pairs of nodes, as they are seen. */
export function arcsOf(pairs, { frame, view }) {
  const arcs = [];
  for (let at = 0; at < pairs.length; at += 2) {
    arcs.push(geodesic(...frame.seen(view, pairs[at]), ...frame.seen(view, pairs[at + 1])));
  }
  return arcs;
}

function strokeEdges(context, { left, top, scale }, scene, pairs, colour, strength, width) {
  if (!pairs.length) return;
  context.strokeStyle = colour;
  context.globalAlpha = strength;
  context.lineWidth = width;
  context.beginPath();
  for (const arc of arcsOf(pairs, scene)) traceGeodesic(context, arc, left, top, scale);
  context.stroke();
  context.globalAlpha = 1;
}

/** The chosen node's edges and way up, rings around it and what is pointed at, names, and the line of a lasso. */
export function drawAbove(context, place, scene, look) {
  const at = (node) => {
    const [x, y] = scene.frame.seen(scene.view, node);
    return [place.left + place.scale * x, place.top - place.scale * y];
  };
  strokeEdges(context, place, scene, scene.ownEdges, look.accent, 0.6, 1.4);
  strokeEdges(context, place, scene, pairsAlong(scene.way), look.mark, 0.95, 2.2);
  context.lineWidth = 2;
  if (scene.hover >= 0) ring(context, at(scene.hover), scene.dot / 2 + 4, look.text);
  if (scene.focus >= 0) ring(context, at(scene.focus), scene.dot / 2 + 5, look.mark);
  drawNames(context, place, scene, at, look);
  if (scene.lasso?.length) drawLasso(context, place, scene.lasso, look);
}

function ring(context, [x, y], radius, colour) {
  context.strokeStyle = colour;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
}

function drawNames(context, place, scene, at, look) {
  if (scene.focus < 0 || !scene.name) return;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.font = look.normal;
  const boxes = [];
  for (const node of [scene.focus, ...scene.named.slice(0, NAMED)]) {
    const [x, y] = at(node);
    const text = shortened(scene.name(node));
    const box = [x + scene.dot / 2 + 7, y - 9, context.measureText(text).width, 18];
    if (boxes.some((other) => overlap(box, other))) continue;
    boxes.push(box);
    const isFocus = node === scene.focus;
    context.font = isFocus ? look.strong : look.normal;
    haloed(context, text, box[0], y, look.raised, isFocus ? look.text : look.quiet);
  }
}

function overlap([x, y, width, height], [u, v, wide, high]) {
  return x < u + wide && u < x + width && y < v + high && v < y + height;
}

function shortened(text) {
  return text.length > 28 ? `${text.slice(0, 27)}…` : text;
}

function haloed(context, text, x, y, halo, colour) {
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = halo;
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

function drawLasso(context, { left, top, scale }, line, look) {
  context.beginPath();
  for (let k = 0; k < line.length; k += 2) context.lineTo(left + scale * line[k], top - scale * line[k + 1]);
  context.closePath();
  context.fillStyle = look.accent;
  context.globalAlpha = 0.12;
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = look.accent;
  context.lineWidth = 1.5;
  context.stroke();
}

// The picture as a file.

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
