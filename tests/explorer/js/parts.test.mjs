import assert from "node:assert/strict";
import test from "node:test";
import { MODULES, generator, pointWithin } from "./random.mjs";

const load = (name) => import(new URL(name, MODULES));
const { geodesic, geodesicPath } = await load("geodesic.mjs");
const { Grid } = await load("points.mjs");
const { Ids, Links, edgesAround } = await load("data.mjs");
const { blended, colouring, histogram, scaleOf, wayUp } = await load("colors.mjs");
const { isInside, nodesInside } = await load("explorer.mjs");
const { Pace } = await load("stage.mjs");
const { apply, compose, read, step, written } = await load("view.mjs");

test("a geodesic meets the boundary at right angles and both points", () => {
  const random = generator(1);
  for (let k = 0; k < 200; k += 1) {
    const [p, q] = [pointWithin(random, 4), pointWithin(random, 4)];
    const { cx, cy, radius } = geodesic(...p, ...q);
    if (!radius) continue;
    assert.ok(Math.abs(cx * cx + cy * cy - 1 - radius * radius) < 1e-6 * radius * radius);
    for (const [x, y] of [p, q]) assert.ok(Math.abs(Math.hypot(x - cx, y - cy) - radius) < 1e-9 * (1 + radius ** 2));
  }
  assert.equal(geodesic(0.5, 0, -0.2, 0).radius, 0);
  assert.equal(geodesic(0.5, 0.1, 0.5, 0.1).radius, 0);
  assert.match(geodesicPath(geodesic(0.5, 0, 0, 0.5), 100, 100, 100), /^M150.0 100.0A[\d.]+ [\d.]+ 0 0 1 100.0 50.0$/);
});

test("the grid finds what a look at all points finds", () => {
  const random = generator(2);
  const near = new Float32Array(Array.from({ length: 3000 }, () => pointWithin(random, 7)).flat());
  const grid = new Grid(near);
  for (let k = 0; k < 300; k += 1) {
    const rest = compose(step(4 * random(), 7 * random()), step(random(), 7 * random()));
    const [x, y] = pointWithin(random, 5);
    const radius = 0.06 * random();
    let [best, least] = [-1, radius * radius];
    for (let node = 0; node < 3000; node += 1) {
      const [u, v] = apply(rest, near[2 * node], near[2 * node + 1]);
      const far = (u - x) ** 2 + (v - y) ** 2;
      if (far < least) [best, least] = [node, far];
    }
    assert.equal(grid.nearest(rest, x, y, radius), best);
  }
});

test("ids are found exactly, by their beginning, or by a part", () => {
  const texts = ["ann", "Anna", "joann", "böb", "", "ANN"];
  const parts = texts.map((text) => new TextEncoder().encode(text));
  const offsets = Uint32Array.from([0, ...parts.map((_, k) => parts.slice(0, k + 1).reduce((sum, part) => sum + part.length, 0))]);
  const ids = new Ids(Uint8Array.from(parts.flatMap((part) => [...part])), offsets);
  assert.deepEqual(texts.map((_, node) => ids.text(node)), texts);
  assert.deepEqual(ids.find("ann", 8), [0, 5, 1, 2]);
  assert.deepEqual(ids.find("ann", 2), [0, 5]);
  assert.deepEqual(ids.find("ö", 8), [3]);
  assert.deepEqual(ids.find("", 8), []);
  assert.deepEqual(ids.find("zz", 8), []);
  assert.deepEqual([ids.exactly("ANN"), ids.exactly("joann"), ids.exactly("jo")], [5, 2, -1]);
});

// a path 0 - 1 - 2 - 3 and a star about 1
const links = new Links(Uint32Array.of(0, 1, 4, 6, 7, 8), Uint32Array.of(1, 0, 2, 4, 1, 3, 2, 1));

test("edges around the middle come once, the nearest first", () => {
  const seen = Float32Array.of(0, 0, 0.1, 0, 0.5, 0, 0.9, 0, 0.95, 0);
  assert.deepEqual([...edgesAround(links, seen, 100)], [0, 1, 1, 2, 1, 4, 2, 3]);
  assert.deepEqual([...edgesAround(links, seen, 2)], [0, 1, 1, 2]);
});

test("the way up goes to ever smaller radii", () => {
  assert.deepEqual(wayUp(3, links, [0.5, 1, 2, 3, 0.1]), [3, 2, 1, 4]);
  assert.deepEqual(wayUp(4, links, [0.5, 1, 2, 3, 0.1]), [4]);
});

test("a histogram counts everything once", () => {
  const { low, high, counts } = histogram([0, 0.1, 0.5, 1, 1], 4);
  assert.deepEqual([low, high, ...counts], [0, 1, 2, 0, 1, 2]);
  assert.deepEqual([...histogram([2, 2], 3).counts], [2, 0, 0]);
});

test("names get the palette by frequency, the rest is grey", () => {
  const column = { kind: "category", categories: ["a", "b", "c"] };
  const { shades, table, legend } = colouring(column, Uint16Array.of(0, 2, 2, 1, 1, 0xffff), ["#111111", "#222222"], []);
  assert.deepEqual(legend.entries.map(({ name, count }) => [name, count]), [["b", 2], ["c", 2], ["all others", 2]]);
  assert.deepEqual([...shades].map((shade) => table[shade]), ["#8a8f98", "#222222", "#222222", "#111111", "#111111", "#8a8f98"]);
});

test("a name that no point has keeps its colour, and is not in the legend", () => {
  const column = { kind: "category", categories: ["a", "b", "c"] };
  const { shades, table, legend } = colouring(column, Uint16Array.of(0, 2), ["#111111", "#222222", "#333333"], []);
  assert.deepEqual([...shades].map((shade) => table[shade]), ["#111111", "#333333"]);
  assert.deepEqual(legend.entries.map(({ name }) => name), ["a", "c"]);
});

test("numbers get the ramp, none gets grey", () => {
  const column = { kind: "number", low: 0, middle: 1, high: 2 };
  const { shades, table, legend } = colouring(column, Float32Array.of(0, 1, 2, NaN), [], ["#000000", "#ffffff"]);
  assert.deepEqual([...shades].map((shade) => table[shade]), ["#000000", "#808080", "#ffffff", "#8a8f98"]);
  assert.deepEqual(legend.ticks, [0, 1, 2]);
  assert.equal(blended(["#000000", "#0000ff", "#00ff00"], 0.75), "#008080");
  const { to, from, logarithmic } = scaleOf({ low: 1, middle: 2, high: 1000 });
  assert.ok(logarithmic && Math.abs(from(to(37)) - 37) < 1e-9);
  assert.equal(scaleOf({ low: 3, middle: 3, high: 3 }).to(3), 0.5);
});

test("a lasso holds what is inside", () => {
  const shape = [0, 0, 1, 0, 1, 1, 0.5, 0.5, 0, 1];
  assert.ok(isInside(shape, 0.5, 0.2));
  assert.ok(!isInside(shape, 0.5, 0.8));
  assert.deepEqual(nodesInside(shape, Float32Array.of(0.5, 0.2, 0.5, 0.8, 0.9, 0.7, -1, 0)), [0, 2]);
});

test("an address restores the view", () => {
  const state = { view: compose(step(17, 2), step(1, 1)), zoom: 2.5, column: "a & b=c", node: "x#+%é 1", picture: "projection" };
  const found = read(written(state));
  assert.deepEqual([found.zoom, found.column, found.node, found.picture], [2.5, "a & b=c", "x#+%é 1", "projection"]);
  found.view.forEach((value, k) => assert.ok(Math.abs(value - state.view[k]) <= 1e-15 * Math.abs(state.view[k])));
});

test("an address that makes no sense restores nothing", () => {
  const none = { view: null, zoom: null, column: null, node: null, picture: null };
  for (const hash of ["", "#", "#view=1,2", "#view=a,b,c,d&zoom=x", "#view=0,0,1,1", "#view=1e300,0,0,0", "#zoom="]) {
    assert.deepEqual(read(hash), none, hash);
  }
  assert.equal(read("#zoom=1e9").zoom, 60);
});

test("slow frames thin out what is drawn in motion, quick ones bring it back", () => {
  const pace = new Pace(100_000, () => {});
  pace.moving = true;
  pace.took(100);
  pace.took(30);
  pace.took(100);
  assert.equal(pace.share, 1);
  for (let k = 0; k < 15; k += 1) pace.took(100);
  assert.equal(pace.share, 31);
  for (let k = 0; k < 60; k += 1) pace.took(10);
  assert.equal(pace.share, 8);
  for (let k = 0; k < 300; k += 1) pace.took(10);
  assert.equal(pace.share, 1);
  pace.took(100);
  pace.took(100);
  pace.moving = false;
  assert.equal(pace.share, 1);
  const few = new Pace(1000, () => {});
  few.move();
  assert.equal(few.moving, false);
});
