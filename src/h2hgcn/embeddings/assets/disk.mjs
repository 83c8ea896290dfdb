// Many points of a report, on a canvas.
import { traceGeodesic } from "./geodesic.mjs";

const canvas = document.getElementById("disk");
const told = document.getElementById("disk-point");
const data = JSON.parse(document.getElementById("disk-data").textContent);
const decoded = (text, Kind) => new Kind(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
const points = decoded(data.points, Float32Array);
const shades = decoded(data.shades, Uint8Array);
const labelOf = data.labelOf ? decoded(data.labelOf, Int32Array) : null;
const edges = data.edges ? decoded(data.edges, Float32Array) : new Float32Array(0);
const count = points.length / 2;
const context = canvas.getContext("2d");
let half = 0;
let radius = 0;
let chosen = -1;

const x = (place) => half + radius * points[2 * place];
const y = (place) => half - radius * points[2 * place + 1];

function drawBoundary(color) {
  context.strokeStyle = color;
  context.lineWidth = half / 350;
  context.beginPath();
  context.arc(half, half, radius, 0, 2 * Math.PI);
  context.stroke();
}

function drawEdges(color) {
  context.strokeStyle = color;
  context.lineWidth = half / 500;
  context.globalAlpha = 0.4;
  context.beginPath();
  for (let at = 0; at < edges.length; at += 8) {
    const [x, y, u, v, cx, cy, size, turn] = edges.subarray(at, at + 8);
    traceGeodesic(context, { x, y, u, v, cx, cy, radius: size, turn }, half, half, radius);
  }
  context.stroke();
  context.globalAlpha = 1;
}

function drawPoints() {
  const size = Math.max(1, half * Math.min(0.008, 0.4 / Math.sqrt(count)));
  for (let shade = 0; shade < data.palette.length; shade += 1) {
    context.fillStyle = data.palette[shade];
    for (let place = 0; place < count; place += 1) {
      if (shades[place] === shade) context.fillRect(x(place) - size / 2, y(place) - size / 2, size, size);
    }
  }
}

function draw() {
  const color = getComputedStyle(canvas).color;
  canvas.width = canvas.height = Math.max(1, Math.round(canvas.clientWidth * (window.devicePixelRatio || 1)));
  half = canvas.width / 2;
  radius = 0.98 * half;
  if (data.round) drawBoundary(color);
  drawEdges(color);
  drawPoints();
  if (chosen >= 0) {
    context.strokeStyle = color;
    context.lineWidth = half / 200;
    context.beginPath();
    context.arc(x(chosen), y(chosen), half / 60, 0, 2 * Math.PI);
    context.stroke();
  }
}

function nearest(pageX, pageY) {
  let best = -1;
  let least = (half / 40) ** 2;
  for (let place = 0; place < count; place += 1) {
    const far = (x(place) - pageX) ** 2 + (y(place) - pageY) ** 2;
    if (far < least) [best, least] = [place, far];
  }
  return best;
}

function name(place) {
  if (place < 0) return "";
  const id = data.ids ? String(data.ids[place]) : `point ${place}`;
  return labelOf && labelOf[place] >= 0 ? `${id} · ${data.labels[labelOf[place]]}` : id;
}

canvas.addEventListener("pointermove", (event) => {
  const scale = canvas.width / canvas.clientWidth;
  const found = nearest(event.offsetX * scale, event.offsetY * scale);
  if (found === chosen) return;
  chosen = found;
  told.textContent = name(chosen);
  draw();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
window.addEventListener("resize", draw);
draw();
