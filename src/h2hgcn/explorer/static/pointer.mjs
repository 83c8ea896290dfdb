// Mouse, pen and finger: drag, wheel, click, hover, two fingers, and the lasso.
import { Pinch } from "./pinch.mjs";
import { compose, drag } from "./view.mjs";
import { stopWalk } from "./walk.mjs";
import { within, zoomAt } from "./zoom.mjs";

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
