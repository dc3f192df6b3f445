import type { UserPriority } from '../wire/client-wire.ts';

/** After this many seconds, past usage counts half (HTCondor's PRIORITY_HALFLIFE). */
const HALF_LIFE = 86_400;
/** The best possible priority, as in HTCondor. */
const BEST = 0.5;

interface Account {
  priority: number;
  inUse: number;
  at: number;
}

/**
 * Recent usage by owner. A priority moves towards the number of cores in use, by half the distance in each half-life;
 * owners share a contended pool in inverse proportion to their priorities (HTCondor's user priorities).
 */
export class Priorities {
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => number;

  /** `now`: Unix seconds. */
  constructor(now: () => number, userPriorities: Iterable<UserPriority> = []) {
    this.#now = now;
    for (const { owner, priority } of userPriorities) this.#accounts.set(owner, { priority, inUse: 0, at: now() });
  }

  use(owner: string, cpus: number): void {
    const account = this.#settled(owner);
    account.inUse = Math.max(0, account.inUse + cpus);
  }

  priority(owner: string): number {
    return Math.max(BEST, this.#settled(owner).priority);
  }

  /** The owners, those furthest below their share first: those for whom one more core costs least. */
  order(owners: Iterable<string>, more: ReadonlyMap<string, number> = new Map()): string[] {
    const cost = (owner: string) => this.priority(owner) * (this.#settled(owner).inUse + (more.get(owner) ?? 0) + 1);
    return [...owners]
      .map((owner) => ({ owner, cost: cost(owner) }))
      .sort(byCost)
      .map(({ owner }) => owner);
  }

  all(): UserPriority[] {
    return [...this.#accounts.keys()].map((owner) => ({
      owner,
      priority: this.priority(owner),
      inUse: this.#settled(owner).inUse,
    }));
  }

  #settled(owner: string): Account {
    const now = this.#now();
    let account = this.#accounts.get(owner);
    if (!account) {
      account = { priority: BEST, inUse: 0, at: now };
      this.#accounts.set(owner, account);
    }
    const passed = Math.max(0, now - account.at);
    const keep = 0.5 ** (passed / HALF_LIFE);
    account.priority = account.priority * keep + account.inUse * (1 - keep);
    account.at = now;
    return account;
  }
}

function byCost(a: { owner: string; cost: number }, b: { owner: string; cost: number }): number {
  return a.cost - b.cost || (a.owner < b.owner ? -1 : 1);
}
