// Mouse, pen and finger: drag, wheel, click, hover, and the lasso.
import { compose, drag } from "./view.mjs";
import { stopWalk } from "./walk.mjs";

const STILL = 4; // pixels that a hand may tremble during a click
const INSIDE = 0.995; // a drag goes no nearer to the boundary than this

function within(x, y) {
  const shrink = Math.min(1, INSIDE / Math.hypot(x, y));
  return [x * shrink, y * shrink];
}

/** Connects a stage with the pointer; `on` has the functions pick(node), hover(node, event) and lasso(line). */
export function followPointer(stage, on) {
  const { root } = stage;
  let held = null;

  root.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("button")) return;
    stopWalk(stage);
    root.setPointerCapture(event.pointerId);
    const point = stage.pointAt(event);
    held = { id: event.pointerId, x: event.clientX, y: event.clientY, from: within(...point), view: stage.view, moved: false };
    if (stage.lassoing) stage.scene.lasso = [...point];
    on.hover(-1, event);
  });

  root.addEventListener("pointermove", (event) => {
    if (!held) {
      hoverSoon(event);
    } else if (event.pointerId === held.id) {
      held.moved ||= Math.hypot(event.clientX - held.x, event.clientY - held.y) > STILL;
      if (stage.lassoing) drawLine(event);
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
    if (!held || event.pointerId !== held.id) return;
    const { moved } = held;
    held = null;
    root.classList.remove("dragging");
    if (stage.lassoing) {
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
      zoomAt(stage, Math.exp(-event.deltaY * lines * 0.0015), ...stage.pointAt(event));
    },
    { passive: false },
  );
}

/** Zooms so that what is at (x, y) stays there on the screen; about the middle, if that cannot be. */
export function zoomAt(stage, factor, x = 0, y = 0) {
  stopWalk(stage);
  const before = stage.zoom;
  stage.show(stage.view, before * factor);
  const shrink = before / stage.zoom;
  if (Math.hypot(x, y) >= INSIDE || Math.hypot(x, y) * shrink >= INSIDE) return;
  stage.show(compose(drag(x, y, x * shrink, y * shrink), stage.view));
}
