// What is drawn below the points and above them: the disk, edges as geodesics, and marks with names.
import { geodesic, traceGeodesic } from "./geodesic.mjs";
import { apply } from "./view.mjs";

const NAMED = 8; // neighbours of the chosen node whose ids are written

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
