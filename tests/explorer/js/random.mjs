import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

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

// The explorer's modules and those that it shares with the report lie side by side, as the page gets them.
const folder = mkdtempSync(join(tmpdir(), "h2hgcn-modules-"));
for (const room of ["embeddings/assets/", "explorer/static/"]) {
  cpSync(new URL(`../../../src/h2hgcn/${room}`, import.meta.url), folder, { recursive: true });
}
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

export const MODULES = pathToFileURL(`${folder}/`);
