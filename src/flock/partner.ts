import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { Partner } from '../config/agreements.ts';
import { Patience } from './patience.ts';
import { Balance } from './balance.ts';
import type { Refused } from './clauses.ts';
import { type LentKind, MOST_KINDS, type Of } from './flock-wire.ts';
import { DirectResults } from './direct-results.ts';
import { FlockLink, type ForGateway } from './link.ts';
import { LIST_AGAIN_MS, LIST_MS, plainKind } from './lists.ts';
import { type Around, PASSES_ON, usable } from './paths.ts';
import { Bench, Rate } from './rate.ts';
import { Answers } from '../pool/wire/answers.ts';
import { sentence } from '../util/plain-text.ts';

export interface PartnerOptions {
  readonly agent: string;
  readonly partner: Partner;
  readonly balance: Balance;
  /** The agent that was behind the key before, if any. */
  readonly pinned: string | undefined;
  readonly onPinned: (agent: string) => void;
  readonly dial: (partner: Partner) => Promise<Duplex> | undefined;
  readonly take: (message: ForGateway, bytes: Buffer) => void;
  readonly onUp: () => void;
  readonly onDown: () => void;
  readonly onConfirmed: (sentAt: number) => void;
  /** Whether there are jobs of either side. */
  readonly isBusy: () => boolean;
  /** Us, and the other partners. */
  readonly around: () => Around;
  /** Whether one more worker may bring results itself. */
  readonly mayConnect: () => boolean;
  readonly log: (message: string, facts?: object) => void;
}

/** Jobs that a partner may ask for in a second, and at once. */
const JOBS = { perSecond: 50, burst: 2000 } as const;
/** How many of the latest refusals are kept. */
const MOST_REFUSALS = 20;

export interface NotedRefusal extends Refused {
  /** Unix seconds. */
  readonly at: number;
  readonly by: 'us' | 'them';
  readonly times: number;
}

/** What a gateway knows of one partner while it runs. */
export class PartnerState {
  readonly name: string;
  readonly link: FlockLink;
  readonly answers: Answers;
  /** What our jobs left there. */
  readonly direct: DirectResults;
  readonly bench = new Bench();
  readonly balance: Balance;
  readonly patience = new Patience();
  readonly #jobs = new Rate(JOBS.perSecond, JOBS.burst);
  partner: Partner;
  /** The partner's latest list, and when it came by the monotonic clock in milliseconds. */
  #list:
    | { readonly kinds: readonly LentKind[]; readonly refusal: Refused | undefined; readonly at: number }
    | undefined;
  readonly #around: () => Around;
  /** Whether it takes jobs that we pass on for others. */
  takesForwarded = false;
  #refusals: NotedRefusal[] = [];
  #sent = '';
  #sentAt = Number.NEGATIVE_INFINITY;
  #pinned: string | undefined;
  /** Attempts that the partner took and did not start, in a row. */
  unstarted = 0;
  /** Why we lend nothing to it now. */
  lending: Refused | undefined;
  /**
   * Set if its agreement was removed while jobs run under it: until then by the monotonic clock, in milliseconds, both
   * sides end them over the link that is there.
   */
  leavingUntil: number | undefined;

  constructor(options: PartnerOptions) {
    this.partner = options.partner;
    this.name = options.partner.agreement.name;
    this.balance = options.balance;
    this.#pinned = options.pinned;
    this.#around = options.around;
    this.link = new FlockLink({
      agent: options.agent,
      name: this.name,
      dial: () => (this.bench.isShut ? undefined : options.dial(this.partner)),
      onHello: (agent) => {
        if (agent === options.agent) throw new Error('that is this pool itself');
        if (this.#pinned !== undefined && this.#pinned !== agent)
          throw new Error(
            `another agent (${agent}) has the key of ${this.name}: add the partner again if it was moved`,
          );
        if (this.#pinned === undefined) options.onPinned(agent);
        this.#pinned = agent;
      },
      onUp: () => {
        this.#sent = '';
        options.onUp();
      },
      onDown: () => options.onDown(),
      take: options.take,
      onFault: (message) => this.strike(message, options.log),
      onConfirmed: options.onConfirmed,
      isBusy: options.isBusy,
    });
    this.answers = new Answers(this.link);
    this.direct = new DirectResults({
      ...options,
      partner: this.name,
      link: this.link,
      mayDial: () => this.partner.agreement.url !== undefined && this.partner.agreement.via === undefined,
      dial: async (name, secret) => {
        const stream = await options.dial({ agreement: this.partner.agreement, key: { id: name, key: secret } });
        if (!stream) throw new Error('the agreement has no address any more');
        return stream;
      },
    });
  }

  /** Ends its links: what comes after this is not heard. */
  close(message: string): void {
    this.link.close(message);
    this.direct.close(message);
  }

  /** The same, until it may connect again. */
  cut(message: string): void {
    this.link.cut(message);
    this.direct.close(message);
  }

  /** Whether it may ask for one more job; otherwise it is cut off. */
  mayAsk(log: PartnerOptions['log']): boolean {
    if (this.#jobs.take(1)) return true;
    this.strike('it asks for too many jobs', log);
    return false;
  }

  /** Its agent, once it has connected. */
  get agent(): string | undefined {
    return this.#pinned;
  }

  /** `shut`: without a link, because it does not follow the protocol. */
  strike(message: string, log: PartnerOptions['log'], shut = true): void {
    this.bench.strike(message, shut);
    log('a partner is benched', { partner: this.name, message, seconds: Math.round(this.bench.left) });
  }

  heard({ kinds, refusal, forwarded }: Of<'list'>): void {
    this.takesForwarded = forwarded === true;
    const said = refusal && { clause: sentence(refusal.clause), message: sentence(refusal.message) };
    this.#list = { kinds: kinds.map(plainKind), refusal: said, at: performance.now() };
  }

  /** When its list came, by the monotonic clock in milliseconds. */
  get listedAt(): number {
    return this.#list?.at ?? 0;
  }

  /** What the partner offers, and what others through it; nothing if it has not said so lately. */
  get offers(): readonly LentKind[] {
    const list = this.#list;
    if (!list || !this.link.up || performance.now() - list.at > LIST_MS || this.bench.left > 0) return [];
    return usable(list.kinds, this.#pinned ?? '', this.partner.agreement.hops, this.#around());
  }

  /** Why it lends nothing itself, as it said last. */
  get refusal(): Refused | undefined {
    return this.#list?.refusal;
  }

  /** Why our jobs cannot go there now. */
  get closed(): Refused | undefined {
    const { agreement } = this.partner;
    if (this.leavingUntil !== undefined) return { clause: 'to', message: 'the agreement has been removed' };
    if (!agreement.to) return { clause: 'to', message: 'the agreement does not let our jobs run there' };
    if (agreement.paused) return { clause: 'paused', message: 'the agreement is paused' };
    if (this.bench.left > 0)
      return { clause: 'benched', message: `${this.bench.why}; for ${Math.ceil(this.bench.left)} s` };
    const list = this.#list;
    if (!list || !this.link.up || performance.now() - list.at > LIST_MS)
      return { clause: 'down', message: this.link.up ? 'it has not said what it lends' : this.link.trouble };
    return list.refusal && this.offers.length === 0 ? list.refusal : undefined;
  }

  /** Sends our availability list if it has changed, or the last is a minute old. `beyond`: machines of others, that we pass on. */
  list(own: readonly LentKind[], refusal: Refused | undefined, beyond: readonly LentKind[] = []): void {
    this.lending = refusal;
    const passes = this.link.version >= PASSES_ON;
    const kinds = [...own, ...(passes ? beyond : [])].slice(0, MOST_KINDS);
    const forwarded = passes && this.partner.agreement.forwarded ? ({ forwarded: true } as const) : {};
    const text = JSON.stringify([kinds, refusal, forwarded]);
    const now = performance.now();
    if (!this.link.up || (text === this.#sent && now - this.#sentAt < LIST_AGAIN_MS)) return;
    this.#sent = text;
    this.#sentAt = now;
    this.link.send({ t: 'list', kinds, ...forwarded, ...(refusal ? { refusal: { ...refusal } } : {}) });
  }

  refused(by: 'us' | 'them', refused: Refused, now: number): void {
    const { clause, message } = { clause: sentence(refused.clause), message: sentence(refused.message) };
    const known = this.#refusals.find((one) => one.by === by && one.clause === clause && one.message === message);
    const noted = { by, clause, message, at: now, times: (known?.times ?? 0) + 1 };
    this.#refusals = [noted, ...this.#refusals.filter((one) => one !== known)].slice(0, MOST_REFUSALS);
  }

  get refusals(): readonly NotedRefusal[] {
    return this.#refusals;
  }
}

/** Names a key without showing it. */
export function fingerprint({ key }: Partner): string {
  return createHash('sha256').update(`${key.id} ${key.key}`).digest('hex').slice(0, 32);
}
