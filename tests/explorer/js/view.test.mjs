import assert from "node:assert/strict";
import test from "node:test";
import { MODULES, generator, pointWithin } from "./random.mjs";

const view = await import(new URL("view.mjs", MODULES));
const { IDENTITY, apply, approaching, centred, compose, distanceToMiddle, drag, inverse, reach, step, translation } = view;

const near = (first, second, tolerance = 1e-12) =>
  first.forEach((value, k) => assert.ok(Math.abs(value - second[k]) <= tolerance, `${first} is not ${second}`));

/** The distance of two points by the Poincaré formula, which knows nothing of isometries. */
function distance([x, y], [u, v]) {
  const gap = (1 - x * x - y * y) * (1 - u * u - v * v);
  return 2 * Math.asinh(Math.sqrt(((x - u) ** 2 + (y - v) ** 2) / gap));
}

const randomView = (random, radius) => compose(step(radius * random(), 7 * random()), translation(...pointWithin(random, 1)));

test("a composition does one after the other", () => {
  const random = generator();
  for (let k = 0; k < 200; k += 1) {
    const [g, h, z] = [randomView(random, 3), randomView(random, 3), pointWithin(random, 3)];
    near(apply(compose(g, h), ...z), apply(g, ...apply(h, ...z)));
    near(apply(compose(inverse(g), g), ...z), z);
  }
});

test("distances do not change", () => {
  const random = generator(2);
  for (let k = 0; k < 200; k += 1) {
    const [g, p, q] = [randomView(random, 4), pointWithin(random, 3), pointWithin(random, 3)];
    assert.ok(Math.abs(distance(apply(g, ...p), apply(g, ...q)) - distance(p, q)) < 1e-8);
  }
});

test("a drag takes the point to where the pointer is, and is a translation", () => {
  const random = generator(3);
  for (let k = 0; k < 500; k += 1) {
    const [from, to] = [pointWithin(random, 6), pointWithin(random, 6)];
    const moved = drag(...from, ...to);
    near(apply(moved, ...from), to, 1e-9);
    assert.equal(moved[1], 0); // no turn about the middle
  }
});

test("a drag is the Möbius addition", () => {
  // z ⊕ c of the real line is that of velocities
  near(apply(translation(0.5, 0), 0.25, 0), [0.75 / 1.125, 0]);
  near(apply(drag(0.25, 0, 0.6, 0), 0.25, 0), [0.6, 0]);
});

test("tens of thousands of drags do not drift", () => {
  const random = generator(4);
  const drags = Array.from({ length: 20_000 }, () => drag(...pointWithin(random, 1), ...pointWithin(random, 1)));
  let there = IDENTITY;
  const home = [];
  for (const one of drags) {
    // walk on, but stay within a distance of 6, as people do who look at something
    const next = compose(one, there);
    if (reach(next) > 6) continue;
    there = next;
    home.push(inverse(one));
    const [ar, ai, br, bi] = there;
    assert.ok(Math.abs(ar * ar + ai * ai - br * br - bi * bi - 1) < 1e-11);
  }
  assert.ok(home.length > 10_000);
  const back = home.reduceRight((seen, one) => compose(one, seen), there);
  near(back, [1, 0, 0, 0], 1e-8);
});

test("a node can be centred however deep it lies", () => {
  for (const radius of [0.1, 2, 10, 20, 28]) {
    const length = Math.tanh(radius / 2);
    const point = [length * Math.cos(1), length * Math.sin(1)];
    const seen = centred(randomView(generator(5), 3), ...point);
    near(apply(seen, ...point), [0, 0], 1e-3 * Math.exp(radius - 28));
  }
});

test("the way to a node is a geodesic, gone at an even pace", () => {
  const begin = randomView(generator(6), 2);
  const point = [0.7, -0.5];
  const whole = distanceToMiddle(...apply(begin, ...point));
  for (const share of [0, 0.25, 0.5, 0.9]) {
    const left = distanceToMiddle(...apply(approaching(begin, ...point, share), ...point));
    assert.ok(Math.abs(left - whole * (1 - share)) < 1e-9);
  }
});

test("a step has its length", () => {
  assert.ok(Math.abs(reach(step(2.5, 1)) - 2.5) < 1e-12);
  assert.ok(Math.abs(distanceToMiddle(...apply(step(2.5, 1), 0, 0)) - 2.5) < 1e-12);
});
