import type { PriorityChange, UserPriority } from '../wire/client-wire.ts';
import { nextIndex, type UpDownRates } from './updown.ts';

/** How user priorities are computed. */
export interface PriorityRules {
  /** `usage`: HTCondor's decaying usage; `updown`: the Up-Down index. */
  readonly priority: 'usage' | 'updown';
  /** After this many seconds, past usage counts half (PRIORITY_HALFLIFE). */
  readonly halfLife: number;
  /** DEFAULT_PRIO_FACTOR and NICE_USER_PRIO_FACTOR. */
  readonly factor: number;
  readonly niceFactor: number;
  readonly updown: UpDownRates;
}

export const PRIORITY_RULES: PriorityRules = {
  priority: 'usage',
  halfLife: 86_400,
  factor: 1000,
  niceFactor: 1e10,
  updown: { interval: 120, up: 1, down: 1, halfLife: 3600 },
};

/** The best possible real priority, as in HTCondor. */
const BEST = 0.5;
/** An owner must be better by this much before it may preempt (HTCondor's PriorityDelta). */
const DELTA = 0.5;
/** By Up-Down, an owner who holds nothing may take another's last core if the indexes differ by more than this. */
const MARGIN = 5;
/** Comes before the name of an owner whose job is a nice one (`nice_user`). */
const NICE = /^nice-user\./i;
/** Added to the priority of nice owners under Up-Down: they come after all others. */
const NICE_INDEX = 1e10;

interface Account {
  real: number;
  index: number;
  inUse: number;
  wants: boolean;
  factor: number | undefined;
  /** Core seconds accumulated, and since when; when something of it last ran. Unix seconds. */
  usage: number;
  begin: number;
  last: number;
  /** Monotonic seconds up to which the above is computed. */
  at: number;
  /** It may have changed in a way that cannot be computed from what was saved. */
  changed: boolean;
}

/** A change of one owner's account. */
export interface AccountChange {
  readonly owner: string;
  readonly set: PriorityChange['set'];
  readonly value?: number | undefined;
}

/**
 * The priorities of owners. The real priority moves towards the number of cores in use, by half the distance in each
 * half-life (HTCondor's user priorities); the index is that of the Up-Down algorithm. Both are kept whatever the rules
 * say now, so that the rules can be changed at any time.
 */
export class Priorities {
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => number;
  readonly #wall: () => number;
  #wanting: ReadonlySet<string> = new Set();
  rules: PriorityRules = PRIORITY_RULES;

  /** `now`: monotonic seconds; `wall`: Unix seconds. */
  constructor(now: () => number, userPriorities: Iterable<UserPriority> = [], wall: () => number = now) {
    this.#now = now;
    this.#wall = wall;
    for (const { owner, priority, index = 0, factor, usage = 0, begin, last = 0, at } of userPriorities) {
      // Nothing is counted while no central manager ran: what was held then is known when the workers come back.
      const away = Math.max(0, wall() - (at ?? wall()));
      this.#accounts.set(owner, {
        real: priority,
        index,
        inUse: 0,
        wants: false,
        factor,
        usage,
        begin: begin ?? wall(),
        last,
        at: now() - away,
        changed: false,
      });
    }
  }

  use(owner: string, cpus: number): void {
    const account = this.#settled(owner);
    account.inUse = Math.max(0, account.inUse + cpus);
    account.last = this.#wall();
    account.changed = true;
  }

  /** These owners, and no others, have jobs that wait. */
  want(owners: ReadonlySet<string>): void {
    for (const owner of owners) if (!this.#wanting.has(owner)) this.#setWants(owner, true);
    for (const owner of this.#wanting) if (!owners.has(owner)) this.#setWants(owner, false);
    this.#wanting = new Set(owners);
  }

  #setWants(owner: string, wants: boolean): void {
    const account = this.#settled(owner);
    account.wants = wants;
    account.changed = true;
  }

  /** The effective priority: smaller is better. By Up-Down, the index. */
  priority(owner: string): number {
    const account = this.#settled(owner);
    if (this.rules.priority === 'updown') return account.index + (NICE.test(owner) ? NICE_INDEX : 0);
    return Math.max(BEST, account.real) * this.#factor(owner, account);
  }

  /** Owners who use cores now, and how many. */
  *users(): Generator<[string, number]> {
    for (const [owner, { inUse }] of this.#accounts) if (inUse > 0) yield [owner, inUse];
  }

  inUse(owner: string): number {
    return this.#accounts.get(owner)?.inUse ?? 0;
  }

  /** The owners, those furthest below their share first: those for whom one more core costs least. */
  order(owners: Iterable<string>, more: ReadonlyMap<string, number> = new Map()): string[] {
    return [...owners]
      .map((owner) => ({ owner, cost: this.#cost(owner, more.get(owner) ?? 0) }))
      .sort(byCost)
      .map(({ owner }) => owner);
  }

  #cost(owner: string, more: number): number {
    const account = this.#settled(owner);
    const held = account.inUse + more + 1;
    if (this.rules.priority === 'usage') return this.priority(owner) * held;
    // What the index will be an interval later.
    return this.priority(owner) + this.rules.updown.up * this.#weight(owner, account) * held;
  }

  /**
   * Whether an owner's priority permits it to take `cpus` cores from another: it must be better, and must not hold a
   * larger share than the other afterwards, so that no two owners take the same cores from each other in turn. `more`:
   * the cores that owners are about to get or lose.
   */
  outranks(owner: string, other: string, cpus: number, more: ReadonlyMap<string, number> = new Map()): boolean {
    if (owner === other) return false;
    const mine = this.priority(owner);
    const theirs = this.priority(other);
    const held = this.inUse(owner) + (more.get(owner) ?? 0);
    const others = this.inUse(other) + (more.get(other) ?? 0);
    if (this.rules.priority === 'usage') return mine + DELTA < theirs && mine * (held + cpus) <= theirs * others;
    if (mine >= theirs) return false;
    if (theirs - mine >= NICE_INDEX / 2) return true;
    return held + cpus <= others - cpus || (held === 0 && theirs - mine > MARGIN);
  }

  /** False if the owner is unknown. */
  change({ owner, set, value = 0 }: AccountChange): boolean {
    if (set === 'delete') {
      const account = this.#accounts.get(owner);
      if (!account) return false;
      if (account.inUse > 0 || account.wants) Object.assign(account, this.#fresh(), inUseOf(account));
      else this.#accounts.delete(owner);
      return true;
    }
    if (!this.#accounts.has(owner) && set === 'reset') return false;
    const account = this.#settled(owner);
    account.changed = true;
    switch (set) {
      case 'prio':
        if (this.rules.priority === 'updown') account.index = value;
        else account.real = Math.max(BEST, value);
        break;
      case 'factor':
        account.factor = Math.max(1, value);
        break;
      case 'accum':
        account.usage = Math.max(0, value);
        break;
      case 'begin':
        account.begin = Math.min(Math.max(0, value), this.#wall());
        break;
      case 'last':
        account.last = Math.min(Math.max(0, value), this.#wall());
        break;
      case 'reset':
        account.usage = 0;
        account.begin = this.#wall();
    }
    return true;
  }

  /** What has to be saved so that the next central manager continues from here. */
  all(): UserPriority[] {
    return [...this.#accounts.keys()].map((owner) => this.#saved(owner));
  }

  /** The accounts that have changed since the last call, and those that are changing. */
  changes(): UserPriority[] {
    const changed = [...this.#accounts].filter(([, account]) => account.changed);
    for (const [, account] of changed) account.changed = account.inUse > 0 || account.wants;
    return changed.map(([owner]) => this.#saved(owner));
  }

  factor(owner: string): number {
    return this.#factor(owner, this.#settled(owner));
  }

  #saved(owner: string): UserPriority {
    const { real, index, inUse, factor, usage, begin, last } = this.#settled(owner);
    const times = { begin, last, at: this.#wall() };
    return { owner, priority: real, index, inUse, usage, ...times, ...(factor === undefined ? {} : { factor }) };
  }

  #factor(owner: string, { factor }: Account): number {
    return factor ?? (NICE.test(owner) ? this.rules.niceFactor : this.rules.factor);
  }

  /** By how much capacity held counts more than an ordinary owner's. */
  #weight(owner: string, account: Account): number {
    return NICE.test(owner) ? 1 : this.#factor(owner, account) / this.rules.factor;
  }

  #fresh(): Account {
    const wall = this.#wall();
    return {
      real: BEST,
      index: 0,
      inUse: 0,
      wants: false,
      factor: undefined,
      usage: 0,
      begin: wall,
      last: 0,
      at: this.#now(),
      changed: true,
    };
  }

  #settled(owner: string): Account {
    const now = this.#now();
    let account = this.#accounts.get(owner);
    if (!account) {
      account = this.#fresh();
      this.#accounts.set(owner, account);
    }
    const passed = Math.max(0, now - account.at);
    if (passed === 0) return account;
    const { inUse: held, wants } = account;
    const keep = 0.5 ** (passed / this.rules.halfLife);
    account.real = account.real * keep + held * (1 - keep);
    const weight = this.#weight(owner, account);
    account.index = nextIndex(account.index, { held, wants, weight }, passed, this.rules.updown);
    account.usage += held * passed;
    if (held > 0) account.last = this.#wall();
    account.at = now;
    return account;
  }
}

function inUseOf({ inUse, wants }: Account): Pick<Account, 'inUse' | 'wants'> {
  return { inUse, wants };
}

function byCost(a: { owner: string; cost: number }, b: { owner: string; cost: number }): number {
  return a.cost - b.cost || (a.owner < b.owner ? -1 : 1);
}
