// How many points are drawn while something moves: all of them, or every second, fourth, ... where that is too slow.

const SLOW = 45; // milliseconds of a frame that is too long
const QUICK = 20; // of one that leaves room for more
const FEW = 20_000; // so many points are always drawn
const RESTING = 160; // milliseconds without a move after which all are drawn again
const MOST = 31; // a buffer's stride ends at 255 bytes

export class Pace {
  /** `again` draws everything, once it is still. */
  constructor(count, again) {
    this.count = count;
    this.again = again;
    this.thin = 1;
    this.slow = 0;
    this.quick = 0;
    this.moving = false;
  }

  /** One of so many points is to be drawn now. */
  get share() {
    return this.moving ? this.thin : 1;
  }

  /** Is told of every move. */
  move() {
    if (this.count <= FEW) return;
    this.moving = true;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      this.moving = false;
      if (this.thin > 1) this.again();
    }, RESTING);
  }

  /** Is told of every frame that was drawn: the next one comes late if it took long. */
  drawn() {
    if (!this.moving) return;
    const began = performance.now();
    requestAnimationFrame(() => this.took(performance.now() - began));
  }

  /** One slow frame may be an accident, two in a row are not; to draw more takes a while of quick ones. */
  took(time) {
    this.slow = time > SLOW ? this.slow + 1 : 0;
    this.quick = time > SLOW ? 0 : this.quick + (time < QUICK);
    if (this.slow >= 2) {
      this.thin = Math.min(MOST, 2 * this.thin);
      this.slow = 0;
    } else if (this.quick >= 30) {
      this.thin = Math.ceil(this.thin / 2);
      this.quick = 0;
    }
  }
}
