import assert from "node:assert/strict";
import test from "node:test";
import { MODULES, generator, pointWithin } from "./random.mjs";

const { Frame, REACH, fittingZoom } = await import(new URL("view.mjs", MODULES));
const { IDENTITY, apply, centred, compose, distanceToMiddle, step } = await import(new URL("view.mjs", MODULES));

const f = Math.fround;

/** What the shader computes, each operation rounded to float32. */
function shaded(rest, x, y) {
  const [ar, ai, br, bi] = rest.map(f);
  const times = (p, q) => f(p * q);
  const nr = f(f(times(ar, x) - times(ai, y)) + br);
  const ni = f(f(times(ar, y) + times(ai, x)) + bi);
  const dr = f(f(times(br, x) + times(bi, y)) + ar);
  const di = f(f(times(br, y) - times(bi, x)) - ai);
  const square = f(times(dr, dr) + times(di, di));
  return [f(f(times(nr, dr) + times(ni, di)) / square), f(f(times(ni, dr) - times(nr, di)) / square)];
}

test("float32 is good to a fraction of a pixel wherever one walks", () => {
  const random = generator();
  const points = new Float64Array(Array.from({ length: 200 }, () => pointWithin(random, 12)).flat());
  const frame = new Frame(points);
  let view = IDENTITY;
  let worst = 0;
  for (let k = 0; k < 300; k += 1) {
    view = k % 3 ? compose(step(1.3, 7 * random()), view) : centred(view, points[2 * (k % 200)], points[2 * (k % 200) + 1]);
    frame.follow(view);
    const rest = frame.rest(view);
    for (let node = 0; node < 200; node += 1) {
      const [x, y] = shaded(rest, frame.near[2 * node], frame.near[2 * node + 1]);
      const [u, v] = apply(view, points[2 * node], points[2 * node + 1]);
      worst = Math.max(worst, Math.hypot(x - u, y - v));
    }
  }
  assert.ok(worst < 4e-5, `worst error ${worst}`); // of the disk's radius: a fiftieth of a pixel at 500 pixels
});

test("points deep in the tree stay apart when one walks to them", () => {
  const deep = 20;
  const length = Math.tanh(deep / 2);
  const angle = 2 * Math.asinh(Math.sinh(0.25) / Math.sinh(deep)); // half a unit apart at this radius
  const points = new Float64Array([length, 0, length * Math.cos(angle), length * Math.sin(angle)]);
  assert.equal(f(points[0]), 1); // float32 alone has lost them
  const frame = new Frame(points);
  const view = centred(IDENTITY, points[0], points[1]);
  assert.ok(frame.follow(view));
  const seen = shaded(frame.rest(view), frame.near[2], frame.near[3]);
  assert.ok(Math.abs(distanceToMiddle(...seen) - 0.5) < 1e-3);
});

test("the frame stays where it is for short ways", () => {
  const frame = new Frame(new Float64Array([0.5, 0.5]));
  assert.equal(frame.follow(step(REACH - 0.01, 1)), false);
  assert.equal(frame.follow(step(REACH + 0.01, 1)), true);
  assert.equal(frame.follow(step(REACH + 0.02, 1)), false);
});

test("all points at once and one by one are the same", () => {
  const frame = new Frame(new Float64Array([0.5, 0.25, -0.125, 0.75]));
  const view = compose(step(2, 1), step(1, 3));
  const all = new Float32Array(4);
  frame.allSeen(view, all);
  [...frame.seen(view, 0), ...frame.seen(view, 1)].forEach((value, k) => assert.ok(Math.abs(value - all[k]) < 1e-6));
});

test("a crowd about the middle is seen larger", () => {
  assert.equal(fittingZoom(new Float64Array([0.9, 0, 0, 0.1])), 1);
  assert.ok(Math.abs(fittingZoom(new Float64Array([0.2, 0, 0, 0.1])) - 4) < 1e-12);
  assert.equal(fittingZoom(new Float64Array([0, 0])), 1);
});
