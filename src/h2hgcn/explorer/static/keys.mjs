// The disk by keyboard.
import { compose, step } from "./view.mjs";
import { stopWalk } from "./walk.mjs";
import { zoomBy } from "./zoom.mjs";

const PACE = 0.25; // hyperbolic length of a step
const DIRECTIONS = { ArrowRight: Math.PI, ArrowUp: -Math.PI / 2, ArrowLeft: 0, ArrowDown: Math.PI / 2 };

/** `on` has the functions home, search, clear, lasso, help and pick(node). */
export function followKeys(stage, on) {
  stage.root.addEventListener("keydown", (event) => {
    if (event.target !== stage.root || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in DIRECTIONS) {
      stopWalk(stage);
      // what is seen moves against the arrow: the viewer goes along it
      stage.show(compose(step(event.shiftKey ? 4 * PACE : PACE, DIRECTIONS[event.key]), stage.view));
    } else if (event.key === "+" || event.key === "=") zoomBy(stage, 1.25);
    else if (event.key === "-") zoomBy(stage, 0.8);
    else if (event.key === "Home" || event.key === "0") on.home();
    else if (event.key === "Enter") pickMiddle(stage, on);
    else if (event.key.toLowerCase() === "l") on.lasso();
    else return;
    event.preventDefault();
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest?.("input, select, textarea, dialog");
    if (event.key === "/" && !typing) on.search();
    else if (event.key === "?" && !typing) on.help();
    else if (event.key === "Escape" && !typing) on.clear();
    else return;
    event.preventDefault();
  });
}

/** Chooses the node that is seen nearest to the middle, however far that is. */
function pickMiddle(stage, on) {
  const seen = stage.seen();
  let best = 0;
  let least = Infinity;
  for (let node = 0; node < stage.frame.count; node += 1) {
    const far = seen[2 * node] ** 2 + seen[2 * node + 1] ** 2;
    if (far < least && node !== stage.scene.focus) [best, least] = [node, far];
  }
  on.pick(best);
}
