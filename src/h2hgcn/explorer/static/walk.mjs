// From one view to another, along a geodesic.
import { approaching, centred, compose, inverse, reach } from "./view.mjs";

/** Takes a point of the disk to the middle; at once where people asked for less motion. */
export function walkTo(stage, x, y, done = () => {}) {
  const begin = stage.view;
  const target = centred(begin, x, y);
  const began = performance.now();
  const far = reach(compose(target, inverse(begin)));
  const time = window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : Math.min(900, 250 + 120 * far);
  const go = (now) => {
    const share = time > 0 ? Math.min(1, Math.max(0, now - began) / time) : 1;
    const eased = share * share * (3 - 2 * share);
    stage.show(share < 1 ? approaching(begin, x, y, eased) : target);
    stage.walking = share < 1 ? requestAnimationFrame(go) : null;
    if (share >= 1) done();
  };
  stopWalk(stage);
  go(began);
}

export function walkToNode(stage, node, done) {
  walkTo(stage, stage.frame.points[2 * node], stage.frame.points[2 * node + 1], done);
}

export function stopWalk(stage) {
  if (stage.walking) cancelAnimationFrame(stage.walking);
  stage.walking = null;
}
