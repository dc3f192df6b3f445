import { setTimeout as delay } from 'node:timers/promises';
import { GryphusError } from '../../errors.ts';
import { Turns } from '../../util/turns.ts';
import { BACKLOG, MOST_QUESTIONS } from './direct-wire.ts';

/** Answers that are made at once. */
const AT_ONCE = 4;
const LOOK_MS = 20;

/** A connection with a partner. */
export interface AnsweredLink {
  readonly up: boolean;
  /** Bytes that wait to be read by the partner. */
  readonly backlog: number;
}

/** Answers to one partner's questions, made only as fast as it reads them. */
export class Answers {
  readonly #link: AnsweredLink;
  readonly #turns = new Turns(() => AT_ONCE);
  #waiting = 0;

  constructor(link: AnsweredLink) {
    this.#link = link;
  }

  /** Throws 'protocol-error' at once if more questions wait than a partner may ask. */
  make(answer: () => Promise<void>): Promise<void> {
    if (this.#waiting >= MOST_QUESTIONS) throw new GryphusError('protocol-error', 'it asks too much at once');
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
