// Zooms: what is seen gets larger, and what the hand shows stays under it.
import { compose, drag } from "./view.mjs";
import { stopWalk } from "./walk.mjs";

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
