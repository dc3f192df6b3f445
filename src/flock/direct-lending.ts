import { type Address, parseAddress } from '../config/address.ts';
import type { AttemptKey } from '../job/ids.ts';
import { crashPoint } from '../util/crash-point.ts';
import type { DirectMeetings } from './direct-meetings.ts';
import type { Of } from './flock-wire.ts';
import type { Lender } from './lender.ts';
import type { LendingClient } from './lending-client.ts';
import { isPassedOn } from './lent-journal.ts';
import type { PartnerState } from './partner.ts';

/** Workers that dial for one partner at once: each may wait for seconds. */
const MOST_DIALLING = 32;

/** Has our workers bring results to partners' gateways themselves, where the agreement says how these are reached. */
export class DirectLending {
  readonly #lender: () => Pick<Lender, 'get'>;
  readonly #lending: Pick<LendingClient, 'direct'>;
  /** Attempts whose workers were told where to connect, by partner. */
  readonly #told = new Map<string, Set<AttemptKey>>();
  readonly #dialling = new Map<string, number>();

  readonly #meetings: Pick<DirectMeetings, 'open'>;
  readonly #here: () => Address | undefined;

  /** `here`: where workers on this machine reach our gateway's port. */
  constructor(
    lender: () => Pick<Lender, 'get'>,
    lending: Pick<LendingClient, 'direct'>,
    meetings: Pick<DirectMeetings, 'open'>,
    here: () => Address | undefined,
  ) {
    this.#lender = lender;
    this.#lending = lending;
    this.#meetings = meetings;
    this.#here = here;
  }

  /** Resolves when the worker has connected. Rejects if it cannot, or may not. */
  async open(
    { name: partner, partner: { agreement }, leavingUntil }: Pick<PartnerState, 'name' | 'partner' | 'leavingUntil'>,
    { key, name, secret, dials }: Extract<Of<'ask'>, { what: 'direct' }>,
  ): Promise<void> {
    const lent = this.#lender().get(key);
    if (lent?.partner !== partner || !lent.end) throw new Error('there is no such ended job of yours');
    // Only neighbours know each other: a third pool's worker is not told where to connect.
    if (isPassedOn(lent)) throw new Error('the job was passed on, and its results come by the gateways');
    const { url, via } = agreement;
    if (leavingUntil !== undefined) throw new Error('the agreement is over');
    const here = dials ? this.#here() : undefined;
    if (dials && !here) throw new Error('no port is open here');
    // What ssh reaches from here, a worker does not.
    if (!here && (url === undefined || via !== undefined))
      throw new Error('the agreement has no address that a worker could dial');
    const dialling = this.#dialling.get(partner) ?? 0;
    if (dialling >= MOST_DIALLING) throw new Error('too many workers are connecting');
    this.#dialling.set(partner, dialling + 1);
    this.#told.set(partner, (this.#told.get(partner) ?? new Set()).add(key));
    crashPoint('direct.told');
    try {
      if (here) await this.#meetings.open({ name, secret }, here, (to) => this.#lending.direct(key, to));
      else await this.#lending.direct(key, { ...parseAddress(url ?? '', 'url'), name, secret });
    } finally {
      this.#dialling.set(partner, (this.#dialling.get(partner) ?? 1) - 1);
    }
  }

  /** The agreement, or its key, counts no more: nothing more goes to whoever had it. */
  end(partner: string): void {
    for (const key of this.#told.get(partner) ?? []) void this.#lending.direct(key, undefined).catch(() => undefined);
    this.#told.delete(partner);
  }

  /** Called now and then. */
  clear(): void {
    for (const keys of this.#told.values()) for (const key of keys) if (!this.#lender().get(key)) keys.delete(key);
  }
}
