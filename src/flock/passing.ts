import type { Agreement } from '../config/agreements.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { Borrower } from './borrower.ts';
import type { Refused } from './clauses.ts';
import type { FlockMessage, Hop, LentKind, Of } from './flock-wire.ts';
import type { Lender } from './lender.ts';
import { isPassedOn, type Lent, type Passage } from './lent-journal.ts';
import type { PartnerState } from './partner.ts';
import { type Around, faultInWay, passable, poolName, wayOf } from './paths.ts';
import type { ShownSlots } from './shown-slots.ts';

/** What decides of a partner. */
export type Neighbour = Pick<PartnerState, 'name' | 'agent' | 'partner' | 'closed' | 'takesForwarded'>;

export interface PassingOptions {
  /** Our agent. */
  readonly agent: string;
  readonly partners: ReadonlyMap<string, Neighbour>;
  readonly lender: () => Pick<Lender, 'get' | 'jobs' | 'turnBack'>;
  readonly borrower: () => Pick<Borrower, 'get'>;
  readonly shown: () => Pick<ShownSlots, 'offered' | 'waiting'>;
  readonly tell: (partner: string, message: FlockMessage) => void;
  /** Monotonic milliseconds. */
  readonly clock: () => number;
}

/** How often a partner hears that its job is on the way, in milliseconds. */
const ONWARD_MS = 10_000;
/** How long a job waits in our pool for the machine to which it is to be passed on, in milliseconds. */
const WAIT_MS = 30_000;

/**
 * Passes jobs of one partner on to another: to our central manager, they are a client's jobs that run on nothing but the slots of that
 * other partner, after our own.
 */
export class Passing {
  readonly #options: PassingOptions;
  /** When a partner last heard that its job is on the way, by the monotonic clock. */
  readonly #said = new Map<AttemptKey, number>();
  /** Since when a job is with no partner, by the same clock. */
  readonly #left = new Map<AttemptKey, number>();

  constructor(options: PassingOptions) {
    this.#options = options;
  }

  around(name: string): Around {
    const { agent: us, partners } = this.#options;
    const others = [...partners].flatMap(([other, { agent }]) =>
      other === name || agent === undefined ? [] : [agent],
    );
    return { us, others: new Set(others) };
  }

  /** The machines of other partners that a partner may use through us, at most so many cores of them. */
  offers({ agent, partner: { agreement } }: Neighbour, cores: number): LentKind[] {
    const { agent: us, partners, shown } = this.#options;
    // What our own jobs wait for is theirs.
    if (agent === undefined || shown().waiting) return [];
    const sources = agreement.forward.flatMap((name) => {
      const next = partners.get(name);
      if (next?.agent === undefined || !mayPassTo(next)) return [];
      return [{ hop: { agent: next.agent, name }, kinds: shown().offered(name) }];
    });
    return passable(sources, agent, us, cores);
  }

  /** Whether jobs of anyone are passed on to this partner. */
  isFor(name: string): boolean {
    return [...this.#options.partners.values()].some(({ partner }) => partner.agreement.forward.includes(name));
  }

  /** Why a job may not come on this way, or go on it. */
  refusal(state: Neighbour, asked: Of<'prepare'>): Refused | undefined {
    const { name, agent = '', partner } = state;
    const fault = faultInWay(asked, agent, this.around(name));
    if (fault) return fault;
    if (asked.path?.length && !partner.agreement.forwarded) return NOT_TAKEN;
    return asked.to?.length ? this.#refusalTo(state, asked.to) : undefined;
  }

  #refusalTo(state: Neighbour, to: readonly Hop[]): Refused | undefined {
    const { name, forward } = state.partner.agreement;
    const [first, ...beyond] = to;
    const next = [...this.#options.partners.values()].find(({ agent }) => agent === first?.agent);
    if (!next || !forward.includes(next.name))
      return { clause: 'forward', message: `jobs of ${name} are not passed on to ${first?.name ?? 'that pool'}` };
    const { closed } = next;
    if (closed) return { clause: 'forward', message: `partner ${next.name} (${closed.clause}): ${closed.message}` };
    const pool = poolName(next.name, beyond);
    if (!mayPassTo(next)) return { clause: 'forward', message: `partner ${pool} takes no jobs that are passed on` };
    if (this.machines(state, to).length > 0) return undefined;
    return { clause: 'forward', message: `partner ${pool} has nothing to pass on to now` };
  }

  /** The ads of the machines to which a job is to be passed on. */
  machines(state: Neighbour, to: readonly Hop[]): AttrTexts[] {
    const way = wayTo(to);
    return this.offers(state, Number.MAX_SAFE_INTEGER).flatMap(({ ad, path = [] }) =>
      wayTo(path) === way ? [ad] : [],
    );
  }

  /** Why a job that is here, or was passed on, may not go on by what the agreements say now. */
  expulsion({ forwarded, forward, name }: Agreement, { passage }: Lent): Refused | undefined {
    if (passage?.path.length && !forwarded) return NOT_TAKEN;
    const [next] = passage?.to ?? [];
    if (!next || forward.includes(next.name)) return undefined;
    return { clause: 'forward', message: `jobs of ${name} are not passed on to ${next.name}` };
  }

  /** How a job of our pool came here, and from whom; `undefined`: it is our own, or not passed on. */
  passageOf(key: AttemptKey): (Passage & { readonly from: Hop }) | undefined {
    const lent = this.#options.lender().get(key);
    const agent = lent && this.#options.partners.get(lent.partner)?.agent;
    if (!lent?.passage || !isPassedOn(lent) || agent === undefined) return undefined;
    return { ...lent.passage, from: { agent, name: lent.partner } };
  }

  /** A job of our pool is back from a partner that has not run it. */
  back(key: AttemptKey, why: string): void {
    this.#left.delete(key);
    this.#options.lender().turnBack(key, why.slice(0, MOST_WHY));
  }

  /** Called about once a second: says of jobs on the way that they are, and turns those back for which there is no machine any more. */
  tick(): void {
    const { lender, borrower, tell, clock } = this.#options;
    const now = clock();
    const seen = new Set<AttemptKey>();
    for (const lent of lender().jobs) {
      const { partner, round, startedAt, end, phase } = lent;
      const { key } = lent.request;
      if (!isPassedOn(lent) || phase !== 'committed' || startedAt !== undefined || end) continue;
      seen.add(key);
      if (borrower().get(key)) {
        this.#left.delete(key);
        if (now - (this.#said.get(key) ?? Number.NEGATIVE_INFINITY) < ONWARD_MS) continue;
        this.#said.set(key, now);
        tell(partner, { t: 'onward', key, round });
      } else {
        const since = this.#left.get(key) ?? now;
        this.#left.set(key, since);
        const [next] = lent.passage?.to ?? [];
        if (now - since > WAIT_MS) this.back(key, `partner ${next?.name ?? '?'} has no machine for it any more`);
      }
    }
    for (const known of [this.#said, this.#left]) for (const key of known.keys()) if (!seen.has(key)) known.delete(key);
  }
}

const NOT_TAKEN: Refused = { clause: 'forwarded', message: 'jobs that are passed on are not taken' };
/** Characters of a reason; each pool on the way adds its name. */
const MOST_WHY = 700;

/** Whether a partner has said that it takes jobs that we pass on. */
function mayPassTo({ takesForwarded, closed }: Neighbour): boolean {
  return takesForwarded && closed === undefined;
}

function wayTo(path: readonly Hop[]): string {
  return wayOf(path.map(({ agent }) => agent));
}
