import type { Size } from '../../wire/wire.ts';
import type { Hold } from './machines.ts';

/** Under which name what was left by a parallel job is held. */
export const KEPT_FOR = 'the next parallel job';

/** What parallel jobs have left of machines, until it is given back to other jobs (UNUSED_CLAIM_TIMEOUT). */
export class KeptClaims {
  readonly #kept = new Map<string, { readonly size: Size; readonly until: number }[]>();

  get size(): number {
    return this.#kept.size;
  }

  /** Keeps a claim of a machine until then, in seconds. */
  keep(machine: string, size: Size, until: number): void {
    this.#kept.set(machine, [...(this.#kept.get(machine) ?? []), { size, until }]);
  }

  /** Whether anything is kept of a machine. */
  has(machine: string): boolean {
    return this.#kept.has(machine);
  }

  /** A parallel job uses so many cores of the machine now. */
  use(machine: string, cpus: number): void {
    const kept = this.#kept.get(machine) ?? [];
    for (let left = cpus; left > 0; ) {
      const one = kept.shift();
      if (!one) break;
      left -= one.size.cpus;
    }
    if (kept.length === 0) this.#kept.delete(machine);
  }

  /** What is to be held at this time, in seconds, beside what the scheduler's plan holds of the same machines. */
  holds(now: number, planned: readonly Hold[]): Hold[] {
    for (const [machine, kept] of this.#kept) {
      const left = kept.filter(({ until }) => until > now);
      if (left.length === 0) this.#kept.delete(machine);
      else this.#kept.set(machine, left);
    }
    return [...this.#kept].flatMap(([machine, kept]) => {
      const already = planned.filter((hold) => hold.machine === machine).length;
      return kept.slice(already).map(({ size }) => ({ machine, size, at: 0, for: KEPT_FOR }));
    });
  }
}
