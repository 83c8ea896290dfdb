// Moves by pointer, touch and keys.
import { approaching, centred, compose, drag, inverse, reach, step } from "./view.mjs";

// From one view to another, along a geodesic.

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

// Zooms: what is seen gets larger, and what the hand shows stays under it.

const INSIDE = 0.995; // a drag goes no nearer to the boundary than this

/** The nearest point that a drag may begin or end at. */
export function within(x, y) {
  const shrink = Math.min(1, INSIDE / Math.hypot(x, y));
  return [x * shrink, y * shrink];
}

/** Zooms about the middle. */
export function zoomBy(stage, factor) {
  stopWalk(stage);
  stage.show(stage.view, stage.zoom * factor);
}

/** Zooms so that what is at the place of an event stays there; about the middle, if that cannot be. */
export function zoomAt(stage, factor, event) {
  const from = stage.pointAt(event);
  zoomBy(stage, factor);
  const to = stage.pointAt(event);
  if (Math.max(Math.hypot(...from), Math.hypot(...to)) < INSIDE) stage.show(compose(drag(...from, ...to), stage.view));
}

// Two fingers: apart zooms in, together out, and what was between them stays between them.

export class Pinch {
  /** Begins with the events of two pointers that touch the stage. */
  constructor(stage, first, second) {
    this.stage = stage;
    this.fingers = new Map([[first.pointerId, first], [second.pointerId, second]]);
    this.begin = { view: stage.view, zoom: stage.zoom, apart: this.#apart(), from: within(...stage.pointAt(this.#between())) };
  }

  has(event) {
    return this.fingers.has(event.pointerId);
  }

  /** From where the fingers began, as a drag does, so that nothing drifts. */
  move(event) {
    this.fingers.set(event.pointerId, event);
    const { view, zoom, apart, from } = this.begin;
    this.stage.show(view, (zoom * this.#apart()) / apart);
    this.stage.show(compose(drag(...from, ...within(...this.stage.pointAt(this.#between()))), view));
  }

  /** The finger that stays when another is lifted. */
  other(event) {
    return [...this.fingers.values()].find(({ pointerId }) => pointerId !== event.pointerId);
  }

  #apart() {
    const [a, b] = this.fingers.values();
    return Math.max(1, Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY));
  }

  #between() {
    const [a, b] = this.fingers.values();
    return { clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2 };
  }
}

// Mouse, pen and finger: drag, wheel, click, hover, two fingers, and the lasso.

const STILL = 4; // pixels that a hand may tremble during a click

/** Connects a stage with the pointer; `on` has the functions pick(node), hover(node, event) and lasso(line). */
export function followPointer(stage, on) {
  const { root } = stage;
  let held = null;
  let pinch = null;

  root.addEventListener("pointerdown", (event) => {
    if (pinch || event.button !== 0 || event.target.closest("button")) return;
    stopWalk(stage);
    root.setPointerCapture(event.pointerId);
    on.hover(-1, event);
    if (held && event.pointerType === "touch") {
      stage.scene.lasso = null;
      pinch = new Pinch(stage, held.last, event);
      held = null;
    } else {
      hold(event);
      if (stage.lassoing) stage.scene.lasso = [...stage.pointAt(event)];
    }
  });

  function hold(event, moved = false) {
    const from = within(...stage.pointAt(event));
    held = { id: event.pointerId, x: event.clientX, y: event.clientY, from, view: stage.view, moved, last: event };
  }

  root.addEventListener("pointermove", (event) => {
    if (pinch) {
      if (pinch.has(event)) pinch.move(event);
    } else if (!held) {
      hoverSoon(event);
    } else if (event.pointerId === held.id) {
      held.last = event;
      held.moved ||= Math.hypot(event.clientX - held.x, event.clientY - held.y) > STILL;
      if (stage.scene.lasso) drawLine(event);
      else if (held.moved) dragTo(event);
    }
  });

  // from where the drag began, not from the last step: no step's rounding is left, whatever way the hand took
  function dragTo(event) {
    root.classList.add("dragging");
    stage.show(compose(drag(...held.from, ...within(...stage.pointAt(event))), held.view));
  }

  function drawLine(event) {
    stage.scene.lasso.push(...stage.pointAt(event));
    stage.ask();
  }

  function release(event) {
    if (pinch?.has(event)) {
      hold(pinch.other(event), true);
      pinch = null;
      return;
    }
    if (!held || event.pointerId !== held.id) return;
    const { moved } = held;
    held = null;
    root.classList.remove("dragging");
    if (stage.scene.lasso) {
      const line = stage.scene.lasso;
      stage.scene.lasso = null;
      if (moved) on.lasso(line);
      stage.ask();
    } else if (!moved && event.type === "pointerup") {
      const node = stage.nodeAt(...stage.pointAt(event));
      if (node >= 0) on.pick(node);
    }
  }
  root.addEventListener("pointerup", release);
  root.addEventListener("pointercancel", release);
  root.addEventListener("pointerleave", (event) => {
    last = null;
    on.hover(-1, event);
  });

  let last = null;
  function hoverSoon(event) {
    if (!last) {
      requestAnimationFrame(() => {
        if (last && !held) on.hover(last.target.closest?.("button") ? -1 : stage.nodeAt(...stage.pointAt(last)), last);
        last = null;
      });
    }
    last = event;
  }

  root.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      zoomAt(stage, Math.exp(-event.deltaY * lines * 0.0015), event);
      if (held && !stage.scene.lasso) hold(held.last, held.moved); // a drag goes on from what is under the hand now
    },
    { passive: false },
  );
}

// The disk by keyboard.

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
