import type { Duplex } from 'node:stream';
import { asError } from '../../errors.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { inAd, readBoolean } from '../../job/values.ts';
import { lookAtMachines } from '../../queue/usage-machines.ts';
import type { HomeAnswer, HomeRequest } from '../../site/chirp.ts';
import type { Outcome, Report } from '../../site/contract.ts';
import { type Attempt, jobOf, reportOf } from './attempts.ts';
import {
  type AttemptRequest,
  CLIENT_WIRE_VERSION,
  type FromClient,
  readFromClient,
  type Steer,
  type ToClient,
} from '../wire/client-wire.ts';
import { sinceBootMs } from '../../util/boot-clock.ts';
import type { FromWorker } from '../wire/wire.ts';
import type { CentralManager } from './central-manager.ts';
import type { CentralManagerWorkers } from './worker-connections.ts';
import type { CentralManagerShells } from './central-manager-shells.ts';
import { askDirect } from './direct-results.ts';
import { Fetching } from './fetching.ts';
import { HomeRequests } from './home-requests.ts';
import { Channel } from '../wire/frames.ts';
import { ownersOf } from './owners.ts';
import { runningNow } from './running-now.ts';
import { looksOf, slotAds } from './slot-ads.ts';
import { whyWaits } from './why.ts';

/** A map's client that does not reconnect within this time is considered gone, in milliseconds. */
const MAP_PATIENCE_MS = 60_000;
/** How long a cancellation waits for the worker's answer before it answers "later", in milliseconds. */
const CANCEL_MS = 15_000;

type Client = Channel<FromClient, ToClient>;

export interface CentralManagerClientsOptions {
  readonly centralManager: CentralManager;
  readonly workers: CentralManagerWorkers;
  readonly shells: CentralManagerShells;
  readonly log: (message: string, facts: object) => void;
}

/** The central manager's side of its clients' connections. */
export class CentralManagerClients {
  readonly #centralManager: CentralManager;
  readonly #workers: CentralManagerWorkers;
  readonly #fetching: Fetching;
  readonly #shells: CentralManagerShells;
  readonly #home = new HomeRequests();
  readonly #open = new Map<string, { readonly channel: Client; readonly map: boolean }>();
  readonly #leaving = new Map<string, NodeJS.Timeout>();
  /** Reports that are sent together. */
  readonly #reports = new Map<string, Report[]>();
  readonly #bases = new Map<string, Extract<FromClient, { t: 'base' }>>();
  readonly #cancels = new Set<(attempt: Attempt) => void>();
  /** Since when clients have been away, in monotonic milliseconds; others since this central manager began. */
  readonly #away = new Map<string, number>();
  readonly #startedAt = sinceBootMs();

  readonly #log: CentralManagerClientsOptions['log'];

  constructor({ centralManager, workers, shells, log }: CentralManagerClientsOptions) {
    this.#log = log;
    this.#shells = shells;
    this.#centralManager = centralManager;
    this.#workers = workers;
    this.#fetching = new Fetching(centralManager, workers);
    // Maps that were running when an earlier central manager ended.
    for (const client of new Set(centralManager.unnamed().map((task) => task.client))) this.#awaitMap(client);
  }

  accept(stream: Duplex): void {
    let client: string | undefined;
    const channel: Client = new Channel(stream, (message) => {
      try {
        return readFromClient(message);
      } catch (thrown) {
        this.#log('a client sent what cannot be read', { client, message: asError(thrown).message });
        throw thrown;
      }
    });
    channel.open(
      (message, bytes) => {
        if (message.t === 'open') {
          const { version = 1 } = message;
          if (version !== CLIENT_WIRE_VERSION) {
            channel.send({
              t: 'denied',
              message: `it speaks version ${CLIENT_WIRE_VERSION} of its clients' protocol, not ${version}`,
              version: CLIENT_WIRE_VERSION,
            });
            return channel.close('another version');
          }
          client = message.client;
          this.#came(client, channel, message.map);
        } else if (message.t === 'shell') this.#shells.open(channel, message);
        else if (message.t === 'shell-in' || message.t === 'shell-size' || message.t === 'shell-close')
          this.#shells.pass(channel, message, bytes);
        else if (message.t === 'home-answer') this.#home.hear(channel, message, bytes);
        else
          this.#take(channel, client, message).catch((thrown: unknown) => {
            if ('id' in message) channel.send({ t: 'failed', id: message.id, message: asError(thrown).message });
          });
      },
      () => {
        this.#shells.leave(channel);
        this.#home.leave(channel);
        if (client !== undefined) this.#left(client, channel);
      },
    );
  }

  /** Reports an attempt's state to the client that requested it. */
  report(client: string, report: Report, attempt: Attempt): void {
    for (const cancel of this.#cancels) cancel(attempt);
    const open = this.#open.get(client);
    if (!open) return;
    // For a map's task only the end is reported.
    if (open.map) return sendResult(open.channel, report, attempt);
    const waiting = this.#reports.get(client);
    if (waiting) {
      waiting.push(report);
      return;
    }
    const reports = [report];
    this.#reports.set(client, reports);
    setImmediate(() => {
      this.#reports.delete(client);
      this.#open.get(client)?.channel.send({ t: 'reports', reports });
    });
  }

  /** Bytes of a followed stream. */
  chunk(attempt: Attempt, stream: 'stdout' | 'stderr', offset: number, bytes: Buffer): void {
    this.#open.get(attempt.client)?.channel.send({ t: 'chunk', key: attempt.key, stream, offset }, bytes);
  }

  /** Sizes and bytes of followed files. */
  files(attempt: Attempt, message: Extract<FromWorker, { t: 'sizes' | 'piece' }>, bytes: Buffer): void {
    this.#open.get(attempt.client)?.channel.send(message, bytes);
  }

  /** A request of a running job, for the client that the attempt belongs to. */
  home(attempt: Attempt, request: HomeRequest, bytes: Buffer): Promise<HomeAnswer> {
    return this.#home.pass(this.#open.get(attempt.client)?.channel, attempt, request, bytes);
  }

  /** Ends the attempts that depend on clients who have been away for longer than their leases. */
  tick(now = sinceBootMs()): void {
    const overdue: AttemptKey[] = [];
    for (const { key, client, request, phase, cancelling } of this.#centralManager.attempts()) {
      if (request.leased !== true || cancelling || phase === 'ended' || phase === 'withdrawn') continue;
      if (this.#open.has(client)) continue;
      if (now - (this.#away.get(client) ?? this.#startedAt) > request.lease * 1000) overdue.push(key);
    }
    if (overdue.length > 0) this.#centralManager.cancel(overdue, 'remove', 'whoever asked for it is away');
  }

  close(): void {
    for (const timer of this.#leaving.values()) clearTimeout(timer);
    for (const { channel } of this.#open.values()) channel.close('the central manager ends');
  }

  #came(client: string, channel: Client, map: boolean): void {
    clearTimeout(this.#leaving.get(client));
    this.#leaving.delete(client);
    this.#open.get(client)?.channel.close('the same client opened another connection');
    this.#open.set(client, { channel, map });
  }

  #left(client: string, channel: Client): void {
    const open = this.#open.get(client);
    if (open?.channel !== channel) return;
    this.#open.delete(client);
    this.#away.set(client, sinceBootMs());
    if (open.map) this.#awaitMap(client);
  }

  #awaitMap(client: string): void {
    this.#leaving.set(
      client,
      setTimeout(() => this.#dropMap(client), MAP_PATIENCE_MS),
    );
  }

  #requests({ base: id, tasks }: Extract<FromClient, { t: 'tasks' }>): AttemptRequest[] {
    const base = this.#bases.get(id);
    if (!base) return [];
    const { owner, ad, size, lease, spec } = base;
    const common = { owner, ad, size, lease, prio: 0 };
    return tasks.map(([key, args, inputs]) => ({
      ...common,
      key,
      spec: { base: id, args: [...spec.args, ...args], ...(inputs === undefined ? {} : { inputs }) },
    }));
  }

  /** Nobody is waiting for a map's results any more: cancels and forgets its tasks. */
  #dropMap(client: string): void {
    this.#leaving.delete(client);
    this.#bases.delete(client);
    const keys = this.#centralManager.all(client).map(({ key }) => key);
    // If they were forgotten without being cancelled, their claims would remain.
    const unnamed = this.#centralManager.unnamed().flatMap((task) => (task.client === client ? [task.key] : []));
    void this.#cancel(keys, 'remove').then(() => this.#centralManager.forget([...keys, ...unnamed], () => undefined));
  }

  async #take(
    channel: Client,
    client: string | undefined,
    message: Exclude<FromClient, { readonly shell: string } | { readonly t: 'home-answer' }>,
  ): Promise<void> {
    const centralManager = this.#centralManager;
    const done = (id: number) => (outcomes: [AttemptKey, Outcome][]) => channel.send({ t: 'done', id, outcomes });
    switch (message.t) {
      case 'prepare':
        centralManager.prepare(client ?? '', message.requests);
        if (message.commit)
          return centralManager.commit(
            message.requests.map(({ key }) => key),
            done(message.id),
          );
        // Answered when it is on disk, like the commit.
        return centralManager.whenSaved(() => done(message.id)(message.requests.map(({ key }) => [key, { ok: true }])));
      case 'commit':
        return centralManager.commit(message.keys, done(message.id));
      case 'cancel':
        return done(message.id)(await this.#cancel(message.keys, message.how));
      case 'forget':
        return centralManager.forget(message.keys, () =>
          done(message.id)(message.keys.map((key) => [key, { ok: true }])),
        );
      case 'all':
        return channel.send({ t: 'reports', id: message.id, reports: centralManager.all(client ?? '').map(reportOf) });
      case 'follow':
        return centralManager.follow(message.key, message.stdout, message.stderr, message.files);
      case 'want':
        return centralManager.want(message);
      case 'fetch':
        return channel.send({ t: 'fetched', id: message.id, outcome: await this.#fetching.fetch(message.request) });
      case 'direct':
        await askDirect(centralManager, this.#workers, client ?? '', message);
        return done(message.id)([[message.key, { ok: true }]]);
      case 'base':
        this.#bases.set(message.base, message);
        return centralManager.base(message.base, message.spec);
      case 'tasks':
        return centralManager.offer(client ?? '', this.#requests(message));
      case 'capacity':
        return channel.send({ t: 'capacity', id: message.id, capacity: centralManager.collector.capacity() });
      case 'beat':
        return done(message.id)([]);
      case 'slots':
        return channel.send({ t: 'slots', id: message.id, ads: slotAds(centralManager) });
      case 'machines':
        return channel.send({
          t: 'machines',
          id: message.id,
          machines: Object.fromEntries(lookAtMachines(looksOf(centralManager), message.named)),
        });
      case 'owners':
        return channel.send({ t: 'owners', id: message.id, owners: ownersOf(centralManager) });
      case 'set-priority': {
        const { id, owner, set, value } = message;
        const owners = owner === undefined ? centralManager.priorities.all().map((one) => one.owner) : [owner];
        const changes = owners.map((one) => ({ owner: one, set, value }));
        return centralManager.changePriorities(changes, (known) => channel.send({ t: 'priority-set', id, known }));
      }
      case 'reserve': {
        const { id, make, drop } = message;
        const all = () => channel.send({ t: 'reserved', id, reservations: [...centralManager.reservations()] });
        return centralManager.reserve(make, drop, all);
      }
      case 'why':
        return channel.send({ t: 'why', id: message.id, ...whyWaits(centralManager, message.job) });
      case 'top':
        return channel.send({ t: 'tops', id: message.id, runs: await runningNow(centralManager, this.#workers) });
      case 'steer':
        return channel.send({ t: 'steered', id: message.id, jobs: this.#steer(message.jobs, message.how) });
      case 'worker-died':
        this.#workers.part(message.token, message.message);
        centralManager.declareDead(message.token, message.message);
        return centralManager.whenSaved(() => done(message.id)([]));
      case 'drain':
        for (const worker of this.#workers.byToken(new Set(message.tokens))) {
          worker.draining = true;
          this.#workers.send(worker.instance, { t: 'drain', now: message.now, message: 'its worker was asked to end' });
        }
        return channel.send({ t: 'done', id: message.id, outcomes: [] });
      case 'open':
    }
  }

  /** Waits until none of them can run any more, for CANCEL_MS at most. */
  async #cancel(keys: readonly AttemptKey[], how: 'remove' | 'if-not-started'): Promise<[AttemptKey, Outcome][]> {
    const open = new Set(keys);
    const outcomes: [AttemptKey, Outcome][] = [];
    const look = (attempt: Attempt) => {
      const outcome = open.has(attempt.key) ? cancelled(attempt, how) : undefined;
      if (!outcome) return;
      open.delete(attempt.key);
      outcomes.push([attempt.key, outcome]);
    };
    return new Promise((resolve) => {
      const finish = () => {
        clearTimeout(timer);
        this.#cancels.delete(each);
        for (const key of open) outcomes.push([key, LATER]);
        resolve(outcomes);
      };
      const each = (attempt: Attempt) => {
        look(attempt);
        if (open.size === 0) finish();
      };
      const timer = setTimeout(finish, CANCEL_MS);
      this.#centralManager.cancel(keys, how, how === 'remove' ? 'its owner withdrew it' : 'it is needed elsewhere');
      for (const key of keys) {
        const attempt = this.#centralManager.get(key);
        if (attempt) look(attempt);
        else if (open.delete(key)) outcomes.push([key, { ok: true }]);
      }
      if (open.size === 0) return finish();
      this.#cancels.add(each);
    });
  }

  #steer(jobs: readonly string[], how: Steer): string[] {
    const wanted = new Set(jobs);
    const found: string[] = [];
    const keys: AttemptKey[] = [];
    for (const attempt of this.#centralManager.attempts()) {
      const job = jobOf(attempt.key);
      if (!wanted.has(job) || (attempt.phase !== 'running' && attempt.phase !== 'suspended')) continue;
      if (how === 'checkpoint' && readBoolean(inAd(attempt.request.ad), 'WantCheckpoint') !== true) continue;
      found.push(job);
      keys.push(attempt.key);
    }
    if (how === 'vacate') this.#centralManager.cancel(keys, 'vacate', 'Job vacated by schedd');
    else this.#centralManager.order(keys, how === 'continue' ? 'resume' : how);
    return found;
  }
}

function sendResult(channel: Client, report: Report, { key, phase, ending, inline }: Attempt): void {
  if (report.is === 'lost' && phase !== 'withdrawn') {
    const how = { kind: 'by-site', cause: 'cannot-start', message: report.why } as const;
    channel.send({ t: 'result', key, ending: { how }, inline: { stdout: 0, stderr: 0 } });
  }
  if (phase !== 'ended' || !ending) return;
  channel.send(
    {
      t: 'result',
      key,
      ending,
      ...(inline && { inline: { stdout: inline.stdout.length, stderr: inline.stderr.length } }),
    },
    inline && Buffer.concat([inline.stdout, inline.stderr]),
  );
}

const LATER: Outcome = {
  ok: false,
  refusal: { kind: 'later', code: 'site-busy', message: 'Its worker has not confirmed yet that it stopped.' },
};

function cancelled(attempt: Attempt, how: 'remove' | 'if-not-started'): Outcome | undefined {
  if (attempt.phase === 'withdrawn') return { ok: true };
  const started = attempt.phase === 'running' || attempt.phase === 'suspended' || attempt.phase === 'ended';
  if (how === 'if-not-started' && started && !endedUnstarted(attempt)) {
    const message = 'It has started.';
    return { ok: false, refusal: { kind: 'never', code: 'already-started', message } };
  }
  return attempt.phase === 'ended' ? { ok: true } : undefined;
}

function endedUnstarted({ ending }: Attempt): boolean {
  return ending?.how.kind === 'by-site' && ending.startedAt === undefined;
}
