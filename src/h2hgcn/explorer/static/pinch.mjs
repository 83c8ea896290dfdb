// Two fingers: apart zooms in, together out, and what was between them stays between them.
import { compose, drag } from "./view.mjs";
import { within } from "./zoom.mjs";

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
