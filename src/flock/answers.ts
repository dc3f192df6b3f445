import { setTimeout as delay } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import { Turns } from '../util/turns.ts';
import { type FlockLink, MOST_ASKED } from './link.ts';

/** Answers that are made at once. */
const AT_ONCE = 4;
/** With more bytes than this waiting to be read by the partner, no further answer is made. */
const BACKLOG = 8 << 20;
const LOOK_MS = 20;

/** Answers to one partner's questions, made only as fast as it reads them. */
export class Answers {
  readonly #link: Pick<FlockLink, 'up' | 'backlog'>;
  readonly #turns = new Turns(() => AT_ONCE);
  #waiting = 0;

  constructor(link: Pick<FlockLink, 'up' | 'backlog'>) {
    this.#link = link;
  }

  /** Throws 'protocol-error' at once if more questions wait than a partner may ask. */
  make(answer: () => Promise<void>): Promise<void> {
    if (this.#waiting >= MOST_ASKED) throw new GryphusError('protocol-error', 'it asks too much at once');
    this.#waiting += 1;
    return this.#turns.run(async () => {
      try {
        while (this.#link.up && this.#link.backlog > BACKLOG) await delay(LOOK_MS);
        if (this.#link.up) await answer();
      } finally {
        this.#waiting -= 1;
      }
    });
  }
}
