import type { AttrTexts } from '../job/attrs.ts';
import { NOTHING, plus } from '../pool/wire/slots.ts';
import type { Tokens } from '../pool/wire/tokens.ts';
import type { FromCentralManager, FromWorker, Size } from '../pool/wire/wire.ts';
import type { Borrower } from './borrower.ts';
import { goingRequirements } from './clauses.ts';
import type { FlockMemory } from './flock-state.ts';
import type { Hop, LentKind } from './flock-wire.ts';
import { combined, sumOf } from './lists.ts';
import type { PartnerState } from './partner.ts';
import type { Passing } from './passing.ts';
import { poolName, wayOf } from './paths.ts';
import { refusalOf, results } from './results.ts';
import { type Order, StandIn } from './stand-in.ts';

export interface ShownSlotsOptions {
  readonly borrower: () => Borrower;
  readonly memory: FlockMemory;
  readonly tokens: Tokens;
  /** The central manager's socket for workers. */
  readonly socket: string;
  readonly partner: (name: string) => PartnerState | undefined;
  /** How a job of our pool came here, if it is another's and passed on. */
  readonly passageOf: Passing['passageOf'];
  readonly log: (message: string, facts?: object) => void;
}

/** The slots of our pool that stand for machines of partners: a worker for each kind, and at least one for each partner. */
export class ShownSlots {
  readonly #options: ShownSlotsOptions;
  readonly #standIns = new Map<string, { readonly partner: string; readonly standIn: StandIn }>();
  /** The pools beyond the partner, for each worker that stands for machines of the last one. */
  readonly #beyond = new Map<string, readonly Hop[]>();
  /** What each worker showed last, with nothing of it free. */
  readonly #used = new Map<string, LentKind>();
  /** Whether jobs of ours wait for a machine. */
  waiting = false;

  constructor(options: ShownSlotsOptions) {
    this.#options = options;
  }

  /** Whether jobs that we pass on hold machines which ours may want. */
  get holdsForOthers(): boolean {
    return [...this.#options.borrower().jobs].some(({ job, phase }) => job.path !== undefined && phase !== 'ended');
  }

  say(worker: string, message: FromWorker, bytes?: Uint8Array): void {
    this.#standIns.get(worker)?.standIn.say(message, bytes);
  }

  partnerOf(worker: string): string | undefined {
    return this.#standIns.get(worker)?.partner;
  }

  /** Seconds since the central manager heard from each of them. */
  *silences(): Generator<readonly [string, number]> {
    for (const [worker, { standIn }] of this.#standIns) yield [worker, standIn.silence];
  }

  /** Shows what a partner offers now. */
  show(name: string): void {
    const borrower = this.#options.borrower();
    const state = this.#options.partner(name);
    const agreement = state?.partner.agreement;
    const closed = state?.closed;
    const kinds = closed || !state ? [] : state.offers;
    const byWorker = assigned(name, kinds);
    const patience = (agreement?.wait ?? 0) * 1000;
    const isOpen = state?.patience.look(this.waiting, patience, performance.now()) === true;
    const running = runningAt(borrower, name);
    const workers = new Set([...running.keys(), ...(agreement?.to === true ? [name] : []), ...byWorker.keys()]);
    for (const worker of workers) {
      const offered = left(byWorker.get(worker), takenSince(borrower, worker, state?.listedAt ?? 0));
      if (offered) this.#used.set(worker, { ...offered, all: { ...NOTHING, diskKb: offered.all.diskKb } });
      // Where jobs that are passed on hold all that is lent, ours take their place.
      const isUsed = closed === state?.refusal && passesOn(borrower, worker);
      const kind = offered ?? (isUsed ? this.#used.get(worker) : undefined);
      const beyond = kind ? (kind.path ?? []) : this.#beyondOf(borrower, worker);
      if (beyond) this.#beyond.set(worker, beyond);
      const refusal = closed ?? (offered || beyond?.length ? undefined : state?.refusal);
      this.keep(name, worker, beyond).show({
        kind,
        running: running.get(worker) ?? NOTHING,
        way: wayOf([state?.agent ?? '', ...(beyond ?? []).map(({ agent }) => agent)]),
        requirements: agreement ? goingRequirements(agreement, kind?.each) : 'false',
        isOpen: isOpen && kind !== undefined,
        passes: state?.takesForwarded === true && offered !== undefined,
        refusal: refusal && `partner ${name} (${refusal.clause}): ${refusal.message}`,
      });
    }
    for (const [worker, { partner, standIn }] of this.#standIns) {
      if (partner !== name || workers.has(worker)) continue;
      if ([...borrower.jobs].some(({ job }) => job.worker === worker)) continue;
      this.#standIns.delete(worker);
      this.#beyond.delete(worker);
      this.#used.delete(worker);
      standIn.close('the partner offers nothing of the kind any more');
    }
  }

  /** What a partner offers that none of our jobs was granted since it said so. */
  offered(name: string): LentKind[] {
    const state = this.#options.partner(name);
    if (!state || state.closed) return [];
    const borrower = this.#options.borrower();
    return [...assigned(name, state.offers)].flatMap(
      ([worker, kind]) => left(kind, takenSince(borrower, worker, state.listedAt)) ?? [],
    );
  }

  /** The pools beyond the partner for which a worker stands: what it shows, what it showed last, or what its jobs say. */
  #beyondOf(borrower: Borrower, worker: string): readonly Hop[] | undefined {
    const known = this.#beyond.get(worker) ?? [...borrower.jobs].find(({ job }) => job.worker === worker)?.job.to;
    return known ?? (worker.includes(BETWEEN) ? undefined : []);
  }

  /** The worker of this name; it is made if there is none. */
  keep(partner: string, worker: string, path?: readonly Hop[]): StandIn {
    const { memory, tokens, socket, log, borrower } = this.#options;
    const known = this.#standIns.get(worker);
    if (known) return known.standIn;
    const beyond = path ?? this.#beyondOf(borrower(), worker) ?? [];
    const pool = poolName(partner, beyond);
    const standIn = new StandIn({
      pool,
      hops: beyond.length,
      worker,
      token: memory.token(worker, `flock ${pool}`, tokens),
      socket,
      held: () => borrower().held(worker),
      take: (of, order, kinds) => this.#order(partner, of, order, kinds),
      log,
    });
    this.#standIns.set(worker, { partner, standIn });
    standIn.open();
    return standIn;
  }

  close(): void {
    for (const { standIn } of this.#standIns.values()) standIn.close('the gateway ends');
  }

  #order(partner: string, worker: string, order: Order, kinds: ReadonlyMap<string, AttrTexts>): void {
    const borrower = this.#options.borrower();
    switch (order.t) {
      case 'start': {
        const { partner: stateOf, passageOf } = this.#options;
        const beyond = this.#beyondOf(borrower, worker);
        const going = { partner, worker, agent: stateOf(partner)?.agent, beyond, passage: passageOf(order.key) };
        return borrower.start(going, order, kinds.get(order.kind));
      }
      case 'cancel':
      case 'suspend':
      case 'resume':
      case 'checkpoint':
      case 'follow':
        return borrower.order(order);
      case 'want':
        // A stand-in has no HasStreamResults, so it gets none.
        return;
      case 'forget':
        return borrower.forget(order.keys);
      case 'disbelieved':
        return this.#disbelieved(partner, order.message);
      case 'ask':
        return void this.#results(partner, worker, order);
      case 'shell':
        return this.say(worker, {
          t: 'shell-over',
          shell: order.shell,
          status: 255,
          message: `the job runs in the pool of ${partner}`,
        });
      // Parallel jobs stay in their own pool.
      case 'go':
      case 'shell-out':
      case 'shell-over':
      case 'shell-in':
      case 'shell-size':
      case 'shell-close':
      case 'kind':
      case 'base':
      case 'release':
      case 'drain':
    }
  }

  /** What comes of the partner is not what it says: it gets nothing for a while. Jobs of ours that run there go on. */
  #disbelieved(partner: string, message: string): void {
    const state = this.#options.partner(partner);
    state?.refused('us', { clause: 'results', message }, Date.now() / 1000);
    state?.strike('results are not what it announced', this.#options.log, false);
  }

  async #results(partner: string, worker: string, ask: Extract<FromCentralManager, { t: 'ask' }>): Promise<void> {
    const state = this.#options.partner(partner);
    try {
      if (ask.what === 'usage') return this.say(worker, { t: 'answer', id: ask.id, ok: true, usage: [] });
      if (!state) throw new Error(`there is no agreement with ${partner} any more`);
      const borrowed = 'key' in ask ? this.#options.borrower().get(ask.key) : undefined;
      const { answer, bytes } = await results(ask, { borrowed, state, log: this.#options.log });
      this.say(worker, answer, bytes);
    } catch (thrown) {
      this.say(worker, refusalOf(ask.id, thrown));
    }
  }
}

/** Whether a worker holds jobs that we pass on for others. */
function passesOn(borrower: Borrower, worker: string): boolean {
  return [...borrower.jobs].some(
    ({ job, phase }) => job.worker === worker && job.path !== undefined && phase !== 'ended',
  );
}

function runningAt(borrower: Borrower, name: string): Map<string, Size> {
  const running = new Map<string, Size>();
  for (const { job, phase } of borrower.jobs)
    if (job.partner === name && phase !== 'ended')
      running.set(job.worker, plus(running.get(job.worker) ?? NOTHING, job.size));
  return running;
}

/** What was granted of a worker since the partner's list came, which does not know it yet. */
function takenSince(borrower: Borrower, worker: string, at: number): Size {
  const since = [...borrower.jobs].filter((one) => one.job.worker === worker && (one.grantedAt ?? 0) > at);
  return sumOf(since.map(({ job }) => job.size));
}

function left(kind: LentKind | undefined, taken: Size): LentKind | undefined {
  return kind && { ...kind, all: combined(kind.all, taken, (much, less) => Math.max(0, much - less)) };
}

/** The first kind of a partner has its name, that of a pool beyond it `c~via~b`, with what no partner's name contains. */
function workerOf(partner: string, path: readonly Hop[], n: number): string {
  const name = poolName(partner, path).replaceAll(' ', BETWEEN);
  return n === 0 ? name : `${name}${path.length === 0 ? '-' : BETWEEN}${n + 1}`;
}

const BETWEEN = '~';

/** The same worker stands for the same kind as long as the same kinds are offered. */
function assigned(partner: string, kinds: readonly LentKind[]): Map<string, LentKind> {
  const sorted = [...kinds].sort((a, b) => (JSON.stringify(a.ad) < JSON.stringify(b.ad) ? -1 : 1));
  const counts = new Map<string, number>();
  return new Map(
    sorted.map((kind) => {
      const { path = [] } = kind;
      const name = poolName(partner, path);
      const n = counts.get(name) ?? 0;
      counts.set(name, n + 1);
      return [workerOf(partner, path, n), kind];
    }),
  );
}
