import { Matchmaker } from '../../../classad/api.ts';
import { readString } from '../../../job/values.ts';
import type { AttemptKey } from '../../../job/ids.ts';
import { offerAd } from '../../wire/ads.ts';
import type { Size } from '../../wire/wire.ts';
import { longestOf } from '../autoclusters.ts';
import type { Attempt } from '../attempts.ts';
import type { CentralManagerTable } from '../central-manager-state.ts';
import { freeNow, type HeldClaim, takesMore, type Worker } from '../collector.ts';
import type { Offer } from '../negotiator.ts';
import { isOver } from '../preempting.ts';
import type { Reserved, Wish } from './dedicated.ts';
import { byAge, byTurns, ownerOf, type Ready } from './service-order.ts';
import { type Busy, type Hold, type Machine, type Part, spare } from './machines.ts';

/** The pool as the dedicated scheduler sees it, and what it can do there. */
export class DedicatedView {
  readonly #table: CentralManagerTable;

  constructor(table: CentralManagerTable) {
    this.#table = table;
  }

  machines(): Machine[] {
    return [...this.#table.collector.all()].filter(takesMore).map((worker) => this.#machine(worker));
  }

  #machine(worker: Worker): Machine {
    const group = readString({ get: (name) => worker.texts[name] ?? undefined }, 'ParallelSchedulingGroup');
    return {
      id: worker.instance,
      site: worker.site,
      group,
      all: worker.size,
      free: freeNow(worker),
      timeToLive: this.#table.collector.timeOf(worker).timeToLive,
      busy: [...worker.claims.values()].map((claim) => this.#busy(worker, claim)),
    };
  }

  #busy(worker: Worker, claim: HeldClaim): Busy {
    const now = this.#table.ports.now() / 1000;
    const attempt = claim.key === undefined ? undefined : this.#table.attempts.get(claim.key);
    const longest = longestOf(claim.kind, attempt);
    const ran = now - (attempt?.startedAt ?? now);
    return {
      id: claim.id,
      size: claim.size,
      ends: longest === undefined ? Number.POSITIVE_INFINITY : Math.max(1, longest - ran),
      loses: attempt && this.#mayVacate(worker, claim, attempt, now) ? ran : undefined,
    };
  }

  /**
   * As in HTCondor, a machine that names a DedicatedScheduler prefers parallel jobs to all others, which make way for
   * them, but for the time that it promised to leave each undisturbed.
   */
  #mayVacate(worker: Worker, claim: HeldClaim, attempt: Attempt, now: number): boolean {
    if (claim.dedicated || worker.texts['DedicatedScheduler'] === undefined) return false;
    return isOver(attempt, worker, Math.floor(now), new Matchmaker({ now: Math.floor(now) }));
  }

  /** In the order in which they are served. */
  wishes(ready: readonly Ready[]): Wish[] {
    const { priorities, sharing } = this.#table;
    const order = sharing.rules.dedicated.fifo ? byAge(ready) : byTurns(ready, priorities);
    return order.map((one) => this.#wish(one));
  }

  #wish(one: Ready): Wish {
    const { gang, parts } = one;
    const longest = parts.map((part) => {
      const kind = this.#table.autoclusters.of(part.request);
      return longestOf(kind, part) ?? Number.POSITIVE_INFINITY;
    });
    return {
      id: gang,
      owner: ownerOf(one),
      parts: parts.map((part) => this.partOf(part)),
      seconds: Math.max(...longest),
      oneGroup: parts.some(({ request }) => request.gang?.oneGroup === true),
    };
  }

  partOf(part: Attempt): Part {
    const { collector, autoclusters } = this.#table;
    const kind = autoclusters.of(part.request);
    const matchmaker = new Matchmaker();
    const known = new Map<string, boolean>();
    const suits = ({ id }: Machine): boolean => {
      const worker = collector.get(id);
      if (!worker || collector.refuses(worker, kind)) return false;
      const before = known.get(id);
      if (before !== undefined) return before;
      const answer = matchmaker.matches(kind.ad, offerAd(worker.ad, worker.size));
      known.set(id, answer);
      return answer;
    };
    return { count: part.request.gang?.count ?? 1, size: part.request.size, suits };
  }

  /** The reservations that have not ended, without what parallel jobs of their owners use already. */
  reserved(): Reserved[] {
    const now = this.#table.ports.now() / 1000;
    return [...this.#table.reservations.values()].flatMap(({ id, owner, count, size, from, until }) => {
      if (until <= now) return [];
      const used = from > now ? 0 : this.#nodesOf(owner);
      const part = { count: Math.max(0, count - used), size, suits: () => true };
      return [{ id, owner, part, from: from - now, until: until - now }];
    });
  }

  #nodesOf(owner: string): number {
    let nodes = 0;
    for (const { node, phase, request } of this.#table.attempts.values())
      if (node && phase !== 'ended' && request.owner === owner) nodes += 1;
    return nodes;
  }

  spare(offers: readonly Offer<Worker>[], holds: readonly Hold[], seconds: number): Offer<Worker>[] {
    const held = new Set(holds.map(({ machine }) => machine));
    return offers.map((offer) => {
      if (!held.has(offer.worker.instance)) return offer;
      return { ...offer, free: this.spareOf(offer.worker, holds, seconds) };
    });
  }

  /** What may be used of one worker now by something that ends after `seconds`. */
  spareOf(worker: Worker, holds: readonly Hold[], seconds: number): Size {
    return spare(this.#machine(worker), holds, seconds);
  }

  /** An opportunistic job makes way for a parallel one. */
  vacate(instance: string, id: string): void {
    const worker = this.#table.collector.get(instance);
    const claim = worker?.claims.get(id);
    const attempt = this.#attempt(claim?.key);
    if (!worker || !attempt || attempt.cancelling || (attempt.phase !== 'running' && attempt.phase !== 'suspended'))
      return;
    attempt.cancelling = 'vacate';
    const message = 'its machine prefers a parallel job';
    this.#table.send(instance, { t: 'cancel', key: attempt.key, how: 'vacate', message, by: 'rank' });
  }

  #attempt(key: AttemptKey | undefined): Attempt | undefined {
    return key === undefined ? undefined : this.#table.attempts.get(key);
  }
}
