// Many points of a report, on a canvas for each picture.
import { geodesic, traceGeodesic } from "./geodesic.mjs";

const held = JSON.parse(document.getElementById("disk-data").textContent);
const decoded = (text, Kind) => new Kind(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

function show(room, picture) {
  const canvas = room.querySelector("canvas");
  const context = canvas.getContext("2d");
  const points = decoded(picture.points, Float32Array);
  const shades = decoded(picture.shades, Uint8Array);
  const edges = picture.edges ? decoded(picture.edges, Float64Array) : [];
  const count = points.length / 2;
  let half = 0;
  let radius = 0;
  let chosen = -1;
  const x = (place) => half + radius * points[2 * place];
  const y = (place) => half - radius * points[2 * place + 1];

  function drawCircle(left, top, size, width) {
    context.lineWidth = width;
    context.beginPath();
    context.arc(left, top, size, 0, 2 * Math.PI);
    context.stroke();
  }

  function drawEdges() {
    context.lineWidth = half / 500;
    context.globalAlpha = 0.4;
    context.beginPath();
    for (let at = 0; at < edges.length; at += 4) {
      const [x, y, u, v] = edges.subarray(at, at + 4);
      const arc = picture.round ? geodesic(x, y, u, v) : { x, y, u, v, radius: 0 };
      traceGeodesic(context, arc, half, half, radius);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  function drawPoints() {
    const size = Math.max(1, half * Math.min(0.008, 0.4 / Math.sqrt(count)));
    for (let shade = 0; shade < picture.palette.length; shade += 1) {
      context.fillStyle = picture.palette[shade];
      for (let place = 0; place < count; place += 1) {
        if (shades[place] === shade) context.fillRect(x(place) - size / 2, y(place) - size / 2, size, size);
      }
    }
  }

  function draw() {
    canvas.width = canvas.height = Math.max(1, Math.round(canvas.clientWidth * (window.devicePixelRatio || 1)));
    context.strokeStyle = getComputedStyle(canvas).color;
    half = canvas.width / 2;
    radius = 0.98 * half;
    if (picture.round) drawCircle(half, half, radius, half / 350);
    drawEdges();
    drawPoints();
    if (chosen >= 0) drawCircle(x(chosen), y(chosen), half / 60, half / 200);
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

  canvas.addEventListener("pointermove", (event) => {
    const scale = canvas.width / canvas.clientWidth;
    const found = nearest(event.offsetX * scale, event.offsetY * scale);
    if (found === chosen) return;
    chosen = found;
    room.querySelector("output").textContent = held.names[chosen] ?? "";
    draw();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(draw).observe(canvas); // and when its part of the page is opened
}

document.querySelectorAll(".canvas").forEach((room, place) => show(room, held.pictures[place]));
