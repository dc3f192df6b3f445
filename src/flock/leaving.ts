import type { Borrower } from './borrower.ts';
import type { FlockMemory } from './flock-state.ts';
import type { FlockMessage } from './flock-wire.ts';
import type { Lender } from './lender.ts';
import type { PartnerState } from './partner.ts';

/** How long jobs have to end, and to be said to have ended, after their agreement was removed, in milliseconds. */
export const LEAVE_MS = 10_000;
/** What is still heard of a partner meanwhile: what ends jobs, and nothing that begins one. */
export const ENDS: ReadonlySet<FlockMessage['t']> = new Set(['ended', 'gone', 'unknown', 'ask', 'forget']);

/** Ends what runs under agreements that there are no more. */
export class Leaving {
  readonly #borrower: Borrower;
  readonly #lender: Lender;
  readonly #memory: FlockMemory;
  /** Partners that have an agreement's file, right or wrong. */
  #named: ReadonlySet<string> | undefined;

  constructor(borrower: Borrower, lender: Lender, memory: FlockMemory) {
    this.#borrower = borrower;
    this.#lender = lender;
    this.#memory = memory;
  }

  named(names: ReadonlySet<string>): void {
    this.#named = names;
  }

  /** Has both sides' jobs ended over the link that is there. True if they have, or had the time for it. */
  isOver({ name, link, leavingUntil = 0 }: PartnerState): boolean {
    const left = this.#lender.leave(name) + this.#borrower.leave(name);
    return left === 0 || !link.up || performance.now() > leavingUntil;
  }

  /**
   * Clears away what is left of partners that are not heard any more. They cannot be asked what became of our jobs:
   * those are waited for as if the partner were silent.
   */
  clear(heard: { has(name: string): boolean }): void {
    // Until the agreements were read, every partner may have one.
    if (!this.#named) return;
    for (const name of new Set([...this.#borrower.partners(), ...this.#lender.partners()])) {
      if (heard.has(name)) continue;
      const silence = this.#memory.silence(name);
      this.#borrower.tick(name, silence);
      if (this.#named.has(name)) this.#lender.tick(name, silence, () => undefined);
      else this.#lender.expel(name);
    }
  }
}
