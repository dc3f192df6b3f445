import { asError } from '../errors.ts';
import type { LendingClient } from './lending-client.ts';
import type { LendingRules } from './lending-rules.ts';
import type { PartnerState } from './partner.ts';
import type { ShownSlots } from './shown-slots.ts';

export interface PoolLookOptions {
  readonly partners: ReadonlyMap<string, PartnerState>;
  readonly pool: Pick<LendingClient, 'up' | 'slots' | 'owners'>;
  readonly rules: Pick<LendingRules, 'saw' | 'list'>;
  readonly shown: Pick<ShownSlots, 'show' | 'waiting' | 'holdsForOthers'>;
  readonly log: (message: string, facts?: object) => void;
}

/** How often our pool is looked at for what may be lent, in milliseconds. */
const LOOK_MS = 3000;

/** Looks at our own pool: who waits, and what may be lent. */
export class PoolLook {
  readonly #options: PoolLookOptions;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking = false;

  constructor(options: PoolLookOptions) {
    this.#options = options;
  }

  /** Called about once a second. */
  tick(): void {
    if (performance.now() - this.#lookedAt > LOOK_MS) void this.#look();
  }

  /** Something has changed. */
  soon(): void {
    this.#lookedAt = Number.NEGATIVE_INFINITY;
    setImmediate(() => void this.#look());
  }

  async #look(): Promise<void> {
    const { partners, pool, rules, shown, log } = this.#options;
    if (this.#looking || !pool.up || partners.size === 0) return;
    this.#looking = true;
    this.#lookedAt = performance.now();
    try {
      const states = [...partners.values()];
      const lends = states.some(({ partner }) => partner.agreement.from);
      const isOffered = states.some((state) => state.partner.agreement.to && state.offers.length > 0);
      const borrows = isOffered || shown.holdsForOthers;
      const at = performance.now();
      const [slots, owners] = await Promise.all([lends ? pool.slots() : undefined, borrows ? pool.owners() : []]);
      if (slots) rules.saw(slots, at);
      shown.waiting = owners.some(({ waiting, owner }) => waiting > 0 && !owner.startsWith('nice-user.'));
      for (const state of states) {
        if (state.partner.agreement.from) rules.list(state);
        else state.list([], { clause: 'from', message: 'the agreement does not let their jobs run here' });
        shown.show(state.name);
      }
    } catch (thrown) {
      log('our pool cannot be looked at', { message: asError(thrown).message });
    } finally {
      this.#looking = false;
    }
  }
}
