import type { Duplex } from 'node:stream';
import type { Address } from '../config/address.ts';
import type { Agreement, Partner } from '../config/agreements.ts';
import { blobsOf } from '../pool/wire/run-blobs.ts';
import { BACKLOG } from '../pool/wire/direct-wire.ts';
import { Journal } from '../pool/host/journal.ts';
import type { Tokens } from '../pool/wire/tokens.ts';
import { type Answerers, answerPartner } from './answering.ts';
import { Borrower } from './borrower.ts';
import { BORROWED_ENTRY, type BorrowedEntry, compactedBorrowed, recoverBorrowed } from './borrowed-journal.ts';
import type { Refused } from './clauses.ts';
import { DirectWays } from './direct-ways.ts';
import { FlockMemory, type FlockPlaces, type FlockStatus, uptime } from './flock-state.ts';
import type { FlockMessage } from './flock-wire.ts';
import { ENDS, LEAVE_MS, Leaving } from './leaving.ts';
import { Lender } from './lender.ts';
import { LendingClient } from './lending-client.ts';
import { LentFiles } from './lent-files.ts';
import { compactedLent, isPassedOn, LENT_ENTRY, type LentEntry, recoverLent } from './lent-journal.ts';
import { LendingRules } from './lending-rules.ts';
import type { ForGateway } from './link.ts';
import { fingerprint, PartnerState } from './partner.ts';
import { PoolLook } from './pool-look.ts';
import { ShownSlots } from './shown-slots.ts';
import { eachSecond } from '../util/each-second.ts';
import { Meter } from './meter.ts';
import { Passing } from './passing.ts';
import { partnerStatus } from './status.ts';

export interface GatewayOptions {
  readonly agent: string;
  readonly places: FlockPlaces;
  readonly tokens: Tokens;
  /** The central manager's sockets. */
  readonly clientSocket: string;
  readonly workerSocket: string;
  readonly dial: (partner: Partner) => Promise<Duplex> | undefined;
  /** Where workers on this machine reach our port; `undefined`: none is open. */
  readonly here: () => Address | undefined;
  readonly onBroken: (error: Error) => void;
  readonly log: (message: string, facts?: object) => void;
}

const SAVE_MS = 60_000;
/** A journal is rewritten when it is larger than this, in bytes. */
const LARGE = 16 << 20;
/** Jobs taken and not started, in a row, for which a partner is benched. */
const MOST_UNSTARTED = 3;
/** A gateway: what we borrow from partners and lend to them, beside our central manager, for which they are a worker and a client. */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #memory: FlockMemory;
  readonly #partners = new Map<string, PartnerState>();
  readonly #shown: ShownSlots;
  readonly #rules: LendingRules;
  readonly #borrower: Borrower;
  readonly #lender: Lender;
  readonly #lending: LendingClient;
  readonly #leaving: Leaving;
  readonly #files: LentFiles;
  readonly #ways: DirectWays;
  readonly #answerers: Answerers;
  readonly #look: PoolLook;
  readonly #passing: Passing;
  readonly #meter = new Meter();
  readonly #borrowedJournal: Journal<BorrowedEntry>;
  readonly #lentJournal: Journal<LentEntry>;
  readonly #stop: () => void;
  #savedAt = performance.now();

  constructor(options: GatewayOptions) {
    const { places, log, onBroken } = options;
    this.#options = options;
    this.#memory = new FlockMemory(places);
    const borrowed = recoverBorrowed(Journal.read(places.borrowed, BORROWED_ENTRY));
    const lent = recoverLent(Journal.read(places.lent, LENT_ENTRY), performance.now());
    this.#borrowedJournal = new Journal<BorrowedEntry>(places.borrowed, onBroken, compactedBorrowed(borrowed));
    this.#lentJournal = new Journal<LentEntry>(places.lent, onBroken, compactedLent(lent));
    const tell = (partner: string, message: FlockMessage, bytes?: Uint8Array) =>
      this.#partners.get(partner)?.link.send(message, bytes) ?? false;
    const clock = () => performance.now();
    const now = () => Date.now() / 1000;
    this.#borrower = new Borrower(
      {
        journal: this.#borrowedJournal,
        say: (worker, message, bytes) => {
          if (message.t === 'started') this.#started(worker);
          this.#shown.say(worker, message, bytes);
          if (message.t === 'gone') this.#passing.back(message.key, message.message);
        },
        tell,
        changed: (partner) => {
          this.#depend(partner);
          this.#shown.show(partner);
        },
        mostResult: (partner) => this.#partners.get(partner)?.partner.agreement.max_result ?? 0,
        fault: (partner, message) => this.#partners.get(partner)?.strike(message, log),
        refused: (partner, clause, message) => this.#refusedByThem(partner, { clause, message }),
        clock,
        log,
      },
      borrowed,
    );
    this.#lending = new LendingClient({
      socket: options.clientSocket,
      onReports: (reports, complete) => this.#lender.reports(reports, complete),
      onChunk: (key, stream, offset, bytes) => {
        const known = this.#lender.get(key);
        const state = known && this.#partners.get(known.partner);
        if (!known || !state || state.link.backlog > BACKLOG) return;
        state.link.send({ t: 'chunk', key, round: known.round, stream, offset }, bytes);
      },
      onHome: (key, request) => this.#ways.lending.answer(key, request),
      log,
    });
    this.#files = new LentFiles(places.files, (key, outputs, into) => this.#lending.fetch(key, outputs, into));
    this.#lender = new Lender(
      {
        journal: this.#lentJournal,
        tell,
        admit: (partner, asked) => {
          const state = this.#partners.get(partner);
          if (!state) return { clause: 'from', message: 'there is no agreement' };
          const made = this.#rules.admit(state, asked);
          // A slot that stands for another pool pulls nothing: what goes on from here comes here first.
          if ('clause' in made || isPassedOn(made)) return made;
          return { ...made, request: this.#ways.lending.marked(state, asked.ad, made.request) };
        },
        bring: (partner, request) => this.#ways.lending.bring(partner, request),
        pool: this.#lending.pool,
        discard: (partner, key) => this.#files.discard(partner, key),
        changed: (partner) => {
          this.#depend(partner);
          this.#look.soon();
        },
        refused: (partner, refused) => this.#partners.get(partner)?.refused('us', refused, now()),
        clock,
        now,
        log,
      },
      lent,
    );
    this.#ways = new DirectWays({
      partners: this.#partners,
      borrower: this.#borrower,
      lender: () => this.#lender,
      lending: this.#lending,
      files: this.#files,
      rules: () => this.#rules,
      here: options.here,
      log,
    });
    this.#answerers = { borrower: this.#borrower, lender: this.#lender, files: this.#files, ways: this.#ways, log };
    this.#leaving = new Leaving(this.#borrower, this.#lender, this.#memory);
    this.#passing = new Passing({
      agent: options.agent,
      partners: this.#partners,
      lender: () => this.#lender,
      borrower: () => this.#borrower,
      shown: () => this.#shown,
      tell,
      clock,
    });
    this.#rules = new LendingRules(
      () => this.#borrower,
      () => this.#lender,
      this.#files,
      this.#passing,
    );
    this.#shown = new ShownSlots({
      borrower: () => this.#borrower,
      memory: this.#memory,
      tokens: options.tokens,
      socket: options.workerSocket,
      partner: (name) => this.#partners.get(name),
      passageOf: (key) => this.#passing.passageOf(key),
      log,
    });
    this.#look = new PoolLook({
      partners: this.#partners,
      pool: this.#lending,
      rules: this.#rules,
      shown: this.#shown,
      log,
    });
    for (const { job } of this.#borrower.jobs) this.#shown.keep(job.partner, job.worker);
    void this.#lending.open();
    this.#stop = eachSecond(() => this.#tick(), { keepsAlive: true });
  }

  /** The agreements in force, from now on. `named`: all that have a file, right or wrong. */
  follow(partners: ReadonlyMap<string, Partner>, named: ReadonlySet<string>): void {
    this.#leaving.named(named);
    const { log, agent, dial } = this.#options;
    for (const [name, state] of this.#partners) {
      const partner = partners.get(name);
      const isSame = partner?.key.id === state.partner.key.id && partner.key.key === state.partner.key.key;
      if (isSame) {
        state.leavingUntil = undefined;
        const moved = JSON.stringify(endsOf(partner.agreement)) !== JSON.stringify(endsOf(state.partner.agreement));
        state.partner = partner;
        if (moved) state.link.cut('the agreement has another address');
        continue;
      }
      if (partner) {
        // The key was changed: nobody who holds the old one is heard any more.
        state.close('the key was revoked');
        this.#ways.end(name);
        this.#partners.delete(name);
      } else {
        if (state.leavingUntil === undefined) this.#ways.end(name);
        state.leavingUntil ??= performance.now() + LEAVE_MS;
        if (this.#leaving.isOver(state)) this.#part(state);
      }
    }
    for (const [name, partner] of partners) {
      if (this.#partners.has(name)) continue;
      const { agent: pinned, balance } = this.#memory.partner(name, fingerprint(partner));
      const state: PartnerState = new PartnerState({
        agent,
        partner,
        balance,
        pinned,
        dial,
        log,
        onPinned: (theirs) => this.#memory.save(name, fingerprint(partner), theirs, balance),
        take: (message, bytes) => this.#take(state, message, bytes),
        onUp: () => {
          log('a partner is connected', { partner: name });
          this.#borrower.sync(name);
          this.#look.soon();
        },
        onDown: () => {
          log('a partner is not connected', { partner: name, message: state.link.trouble });
          this.#borrower.lost(name);
          this.#shown.show(name);
        },
        mayConnect: () => this.#ways.mayConnect,
        isBusy: () => this.#holds(name),
        around: () => this.#passing.around(name),
        onConfirmed: (sentAt) => this.#memory.confirmed(name, sentAt / 1000, this.#holds(name)),
      });
      this.#partners.set(name, state);
      state.link.open();
    }
    for (const name of this.#partners.keys()) this.#shown.show(name);
    this.#look.soon();
  }

  /** Whether there are jobs of either side with this partner. */
  #holds(name: string): boolean {
    const holders = [this.#lender.partners(), this.#borrower.partners()];
    return holders.some((partners) => new Set(partners).has(name));
  }

  /** A job depends on when the partner was last heard. */
  #depend(name: string): void {
    this.#memory.keep(name);
    this.#partners.get(name)?.link.confirm();
  }

  #part(state: PartnerState): void {
    const { name } = state;
    state.close('the agreement is over');
    this.#partners.delete(name);
    this.#options.log('an agreement is over', { partner: name });
    this.#leaving.clear(this.#partners);
  }

  /** The key of whoever connects by this name; `undefined`: it has none, or is benched for what it sent. */
  keyOf(id: string): Buffer | undefined {
    for (const { partner, bench, leavingUntil } of this.#partners.values())
      if (partner.key.id === id && !bench.isShut && leavingUntil === undefined)
        return Buffer.from(partner.key.key, 'hex');
    return this.#ways.keyOf(id);
  }

  /** Somebody has connected who holds the key of this name: a gateway, or a worker that brings results. */
  welcome(id: string, stream: Duplex): void {
    const state = [...this.#partners.values()].find(({ partner }) => partner.key.id === id);
    if (state) state.link.accept(stream);
    else if (!this.#ways.welcome(id, stream)) stream.destroy();
  }

  close(): void {
    this.#stop();
    this.#meter.count(this.#partners, this.#lender, this.#borrower);
    this.#save();
    for (const state of this.#partners.values()) state.close('the gateway ends');
    this.#ways.inputs.end();
    this.#shown.close();
    void this.#lending.close();
  }

  #take(state: PartnerState, message: ForGateway, bytes: Buffer): void {
    const { name, leavingUntil } = state;
    if (leavingUntil !== undefined && !ENDS.has(message.t)) return;
    switch (message.t) {
      case 'list':
        state.heard(message);
        if (this.#passing.isFor(name)) this.#look.soon();
        return this.#shown.show(name);
      case 'prepare':
        if (!state.mayAsk(this.#options.log)) return state.link.cut('it asks for too many jobs');
        return void this.#lender.hear(name, message);
      case 'sync':
      case 'commit':
      case 'cancel':
      case 'suspend':
      case 'resume':
      case 'checkpoint':
      case 'forget':
      case 'follow':
        return void this.#lender.hear(name, message);
      case 'prepared':
      case 'refused':
      case 'onward':
      case 'started':
      case 'suspended':
      case 'resumed':
      case 'ended':
      case 'gone':
      case 'unknown':
      case 'chunk':
        return this.#borrower.hear(name, message, bytes);
      case 'ask':
        return answerPartner(this.#answerers, state, message);
    }
  }

  #refusedByThem(partner: string, refused: Refused): void {
    const state = this.#partners.get(partner);
    if (!state) return;
    state.refused('them', refused, Date.now() / 1000);
    if (refused.clause !== 'start') return;
    state.unstarted += 1;
    if (state.unstarted < MOST_UNSTARTED) return;
    state.unstarted = 0;
    // Jobs of ours that do run there go on.
    state.strike('it takes jobs and does not start them', this.#options.log, false);
  }

  #started(worker: string): void {
    const state = this.#partners.get(this.#shown.partnerOf(worker) ?? '');
    if (state) state.unstarted = 0;
  }

  #tick(): void {
    this.#meter.count(this.#partners, this.#lender, this.#borrower);
    const up = [...this.#lender.partners()].length > 0 ? uptime() : 0;
    for (const [name, state] of this.#partners) {
      if (state.leavingUntil !== undefined) {
        if (this.#leaving.isOver(state)) this.#part(state);
        continue;
      }
      state.link.open();
      this.#borrower.tick(name, state.link.silence);
      const silence = this.#memory.silence(name, up);
      this.#lender.tick(name, silence, (lent) => this.#rules.expulsion(state, lent));
      state.direct.tick((key) => this.#borrower.get(key)?.phase === 'ended');
      if (state.bench.isShut) state.cut('it is benched');
    }
    this.#leaving.clear(this.#partners);
    this.#ways.tick();
    this.#passing.tick();
    for (const [worker, silence] of this.#shown.silences()) this.#borrower.cutOff(worker, silence);
    this.#look.tick();
    if (performance.now() - this.#savedAt > SAVE_MS) this.#save();
    if (this.#borrowedJournal.size > LARGE && this.#borrowedJournal.idle)
      this.#borrowedJournal.rewrite(compactedBorrowed(this.#borrower.snapshot()));
    if (this.#lentJournal.size > LARGE && this.#lentJournal.idle)
      this.#lentJournal.rewrite(compactedLent(this.#lender.snapshot()));
  }

  #save(): void {
    this.#savedAt = performance.now();
    for (const [name, state] of this.#partners) {
      this.#memory.save(name, fingerprint(state.partner), state.agent, state.balance);
      const jobs = [...this.#lender.jobs].filter((lent) => lent.partner === name);
      const used = jobs.flatMap(({ request }) => blobsOf(request.spec).map(({ sha256 }) => sha256));
      this.#files.sweep(name, new Set(used));
    }
  }

  /** Why nothing can be lent or borrowed at all. */
  get trouble(): string | undefined {
    return this.#lending.trouble;
  }

  /** What `gryphus flock` shows. */
  status(): FlockStatus['partners'] {
    return [...this.#partners.values()].map((state) => partnerStatus(state, this.#borrower, this.#lender));
  }
}

function endsOf({ url, via }: Agreement): readonly unknown[] {
  return [url, via];
}
