// Numbers that look random and are the same every time.
export function generator(seed = 1) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A point of the disk up to a hyperbolic radius. */
export function pointWithin(random, radius) {
  const length = Math.tanh((radius * random()) / 2);
  const angle = 2 * Math.PI * random();
  return [length * Math.cos(angle), length * Math.sin(angle)];
}

export const MODULES = new URL("../../../src/h2hgcn/explorer/static/", import.meta.url);
export const SHARED = new URL("../../../src/h2hgcn/embeddings/assets/", import.meta.url);
