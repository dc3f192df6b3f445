import { setTimeout as delay } from 'node:timers/promises';
import { BACKEND_NAMES, backendOf } from '../backends/registry.ts';
import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import { formatMark, type Holder, type QueueMark } from '../job/mark.ts';
import type { AuditableSite, RecalledAttempt, SiteAudit, SitePast, SiteStep } from '../site/audit.ts';
import type {
  AttemptSpec,
  CancelOptions,
  Capacity,
  FetchOutcome,
  FetchRequest,
  Outcome,
  Outcomes,
  PollAnswer,
  PollRequest,
  Sending,
  SiteFacts,
  Upload,
} from '../site/contract.ts';
import type { Transport } from '../transport/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { Asking } from './asking.ts';
import { makeBundle } from './bundle.ts';
import { cancel, forget } from './cancel.ts';
import { commit } from './commit.ts';
import { Content } from './content.ts';
import { delegate } from './delegate.ts';
import { fetch } from './fetch.ts';
import { percentDecode } from '../site/escape.ts';
import { markOf, pastOf, readFacts } from './hello.ts';
import { readRecalled } from './recalled.ts';
import { ResultTransfer } from './result-transfer.ts';
import { leave } from './start-permit.ts';
import { EARLY_MS, Looker, paceOf } from './look.ts';
import { Packs } from './packs.ts';
import { prepare } from './prepare.ts';
import { carryLarge } from './send-blobs.ts';
import { Session } from './session.ts';
import { readAudit, readSteps } from './site-report.ts';
import { checkComplete, ofAsked, type JobManagerContext, answerFields, words } from './site-context.ts';
import { upload } from './upload.ts';
import { View } from './view.ts';

export interface JobManagerOptions {
  /** Shell lines run at the site before any of our code. */
  readonly prelude?: string;
  /** The directory there that contains the agents' directories, `~/…` or absolute; default `~/.gryphus`. */
  readonly scratch?: string;
  /** How many trailing parts of this path must belong to us alone; default 1. */
  readonly ours?: number;
  /** For the check-up: the queue of jobs that name none. */
  readonly queue?: string;
  /** For fork: how many jobs run at once; default: the site's processors. */
  readonly slots?: number;
  /** How many submit commands run at once; default 8. */
  readonly parallelSubmits?: number;
  /** The most attempts in one submit command, if the batch system has arrays; default 1000. 1: no arrays. */
  readonly arrayLimit?: number;
  /** The shortest and the longest time between queries of the queue, in milliseconds. */
  readonly lookMin?: number;
  readonly lookMax?: number;
  /**
   * In seconds: how long a site keeps a prepared job that is never committed (default an hour), and unused content (a
   * day).
   */
  readonly commitWithin?: number;
  readonly cacheFor?: number;
  /** The most bytes of unused content to keep; beyond that, the oldest is deleted. Default: no limit. */
  readonly cacheSize?: number;
  /** A directory of this process's alone for archives of many small inputs; without it, they are sent one by one. */
  readonly packs?: string;
  /** How long PREPARE waits for large content to arrive, in milliseconds; default: as long as it takes. */
  readonly contentPatience?: number;
  /** How long FETCH waits for large results to arrive, in milliseconds; default: as long as it takes. */
  readonly resultsPatience?: number;
  /** Called with the results on their way home and their progress. */
  readonly onComing?: (all: readonly Sending[]) => void;
  /** Called with the content on its way to the site and its progress. */
  readonly onSending?: (all: readonly Sending[]) => void;
  /** The current position of the agent's queue, and the key with which it is signed for the site. */
  readonly mark?: { readonly now: () => Promise<QueueMark>; readonly key: string };
  /** Who serves the agent; absent: the site is only looked at, whoever serves it. */
  readonly holder?: Holder;
  /** The shell that runs the JobManager there; default `sh`. */
  readonly shell?: string;
  /** Milliseconds between TERM and KILL; default 10,000. */
  readonly killAfter?: number;
  /** Milliseconds after which an unconfirmed cancel is left to the next round; default 120,000. */
  readonly giveUp?: number;
  /** Milliseconds after which the batch system is told to forget a job that should have ended; default 600,000. */
  readonly forceAfter?: number;
}

export interface JobManagerSiteConfig {
  readonly name: string;
  readonly agentId: string;
  readonly transport: Transport;
  /** A backend's name in src/backends/registry.ts. */
  readonly backend: string;
  readonly options?: JobManagerOptions;
}

const SWEEP_EVERY = 3_600_000;
/** Bounded by the length of a command line at the site. */
const RECALLED_AT_ONCE = 200;
/**
 * After an answer with at least so many reports, more jobs are about to start and end: the next one waits until so many milliseconds
 * have passed, because an exchange and what follows it cost the same for two reports as for a hundred.
 */
const BUSY_REPORTS = 8;
const BUSY_MS = 300;
/** How often a poll that waits looks for what running jobs have written; whoever follows it asks for shorter polls. Milliseconds. */
const GROWN_MS = 5000;
/** In milliseconds. Each question of the check-up has its own time-out at the site. */
const PROBE_MS = 180_000;

/** Our JobManager over a transport, which the caller must close. 'bad-config' for an unknown batch system. */
export function openJobManagerSite(config: JobManagerSiteConfig): AuditableSite {
  return new ShellSite(config);
}

class ShellSite implements AuditableSite {
  readonly name: string;
  readonly #site: JobManagerContext;
  readonly #looker: Looker;
  readonly #options: JobManagerOptions;
  #sweptAt = Number.NEGATIVE_INFINITY;
  /** The number of vanished attempts at the last answer. */
  #vanished = 0;
  /** When the last poll may be followed by the next. */
  #restUntil = 0;
  /**
   * Distinguishes this client's cursors from those of other clients, or of itself before a restart, which mean nothing
   * here.
   */
  readonly #origin = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;

  constructor(config: JobManagerSiteConfig) {
    const options = config.options ?? {};
    const backend = backendOf(config.backend);
    if (backend === undefined) {
      const known = BACKEND_NAMES.join(', ');
      throw new GryphusError(
        'bad-config',
        `There is no backend for the batch system '${config.backend}' (known: ${known}).`,
      );
    }
    let bundle: ReturnType<typeof makeBundle> | undefined;
    const session = new Session({
      name: config.name,
      agentId: config.agentId,
      transport: config.transport,
      bundle: () => (bundle ??= makeBundle(backend, preludeOf(options))),
      scratch: options.scratch ?? '~/.gryphus',
      ...(options.ours === undefined ? {} : { ours: options.ours }),
      shell: options.shell ?? 'sh',
      holder: options.holder,
    });
    this.name = config.name;
    this.#options = options;
    this.#site = {
      name: config.name,
      session,
      transport: config.transport,
      backend,
      view: new View(backend),
      asking: new Asking(session),
      content: new Content({
        carry: (blob, how) => carryLarge(this.#site, blob, how),
        patience: options.contentPatience ?? Number.POSITIVE_INFINITY,
        tell: options.onSending ?? (() => undefined),
      }),
      resultTransfer: new ResultTransfer({
        patience: options.resultsPatience ?? Number.POSITIVE_INFINITY,
        tell: options.onComing ?? (() => undefined),
      }),
      packs: options.packs === undefined ? undefined : new Packs(options.packs),
      now: () => performance.now(),
      arrays: options.arrayLimit ?? (backend.arrays ? 1000 : 1),
      mark: async () => (options.mark ? [formatMark(await options.mark.now(), options.mark.key)] : []),
      listAgain: () => this.#looker.listAgain(),
    };
    this.#looker = new Looker(this.#site, paceOf(backend.patience, options));
  }

  async describe(): Promise<SiteFacts> {
    return readFacts(await this.#site.session.hello(), this.#site.backend.name);
  }

  async prepare(specs: readonly AttemptSpec[]): Promise<Outcomes> {
    return ofAsked(
      specs.map(({ key }) => key),
      await prepare(this.#site, specs),
    );
  }

  async commit(keys: readonly AttemptKey[]): Promise<Outcomes> {
    return ofAsked(keys, await commit(this.#site, keys));
  }

  async poll(request: PollRequest): Promise<PollAnswer> {
    const { session, view, now } = this.#site;
    const { follow, waitMs = 0, restMs = 0 } = request;
    this.#looker.restMs = restMs;
    const until = this.#looker.onTick(now() + waitMs);
    const seen = this.#seen(request.cursor);
    if (seen === undefined && request.promised !== undefined) view.promise(request.promised);
    crashPoint('jm.before-poll');
    await this.#sweep();
    const rest = Math.min(this.#restUntil, until) - now();
    if (rest > 0) await delay(rest);
    // Whoever asks more often than that wants an answer of the site each time.
    const isPatient = waitMs >= GROWN_MS && follow.length === 0;
    const goodFor = isPatient ? Number.POSITIVE_INFINITY : Math.min(waitMs, Math.max(GROWN_MS, restMs));
    const isIdle = () => seen === view.change && this.#looker.isIdle(follow, goodFor);
    for (let waits = isIdle(); ; waits = true) {
      if (waits) await session.news(this.#looker.news, this.#looker.patience(until, goodFor));
      if (isIdle() && now() >= until - EARLY_MS) {
        return { cursor: `${this.#origin}.${view.change}`, complete: false, reports: [], chunks: [] };
      }
      const { queueError, ...streamed } = await this.#looker.look({
        queue: seen === undefined || this.#looker.isDue,
        follow,
      });
      // A vanished attempt has no report, so only a complete list can show that it is gone.
      const complete = seen === undefined || view.vanished > this.#vanished;
      const reports = view.reports(complete ? 0 : (seen ?? 0)).map((report) => this.#looker.skew.mended(report));
      // The attempts' own records are valid even so.
      const { chunks, sizes, pieces } = streamed;
      const fresh = reports.length + chunks.length + sizes.length + pieces.length > 0;
      if (queueError !== undefined && !fresh) {
        throw new GryphusError('site-busy', `The batch system of ${this.name} does not answer: ${queueError}.`);
      }
      if (complete || fresh || now() >= until) {
        crashPoint('jm.after-poll');
        this.#vanished = view.vanished;
        this.#restUntil = now() + (reports.length < BUSY_REPORTS ? 0 : BUSY_MS);
        return { cursor: `${this.#origin}.${view.change}`, complete, reports, ...streamed };
      }
    }
  }

  async cancel(
    keys: readonly AttemptKey[],
    { onlyIfNotStarted = false, since }: CancelOptions = {},
  ): Promise<Outcomes> {
    if (!onlyIfNotStarted) await this.#site.resultTransfer.drop(keys);
    const { killAfter = 10_000, giveUp = 120_000, forceAfter = 600_000 } = this.#options;
    const patience = { killAfter, giveUp };
    const longAgo = Date.now() - forceAfter;
    const stubborn = new Set(
      onlyIfNotStarted ? [] : keys.filter((key) => (since?.get(key) ?? Number.POSITIVE_INFINITY) <= longAgo),
    );
    const how = onlyIfNotStarted ? 'WAITING' : 'TERM';
    return ofAsked(keys, await cancel(this.#site, this.#looker, keys, how, patience, stubborn));
  }

  async leave(keys: readonly AttemptKey[]): Promise<Outcomes> {
    return ofAsked(keys, await leave(this.#site, keys));
  }

  answerJobs(answer: Parameters<NonNullable<AuditableSite['answerJobs']>>[0]): void {
    this.#site.asking.answerBy(answer);
  }

  async capacity(): Promise<Capacity> {
    const answer = await this.#site.session.exchange('capacity', ['']);
    const [status, line = ''] = answerFields(answer, 'capacity')[0] ?? [];
    return (status === '0' ? this.#site.backend.capacityOf?.(percentDecode(line).trim()) : undefined) ?? {};
  }

  fetch(requests: readonly FetchRequest[]): Promise<ReadonlyMap<AttemptKey, FetchOutcome>> {
    return fetch(this.#site, requests);
  }

  upload(key: AttemptKey, files: readonly Upload[]): Promise<readonly string[]> {
    return upload(this.#site, key, files);
  }

  async forget(keys: readonly AttemptKey[]): Promise<Outcomes> {
    const outcomes = new Map<AttemptKey, Outcome>();
    await this.#site.resultTransfer.drop(keys);
    crashPoint('jm.before-forget');
    await forget(this.#site, keys, outcomes);
    crashPoint('jm.after-forget');
    checkComplete(this.name, keys, outcomes);
    return ofAsked(keys, outcomes);
  }

  delegate(name: string, sign: (requestPem: string) => Promise<string>): Promise<void> {
    return delegate(this.#site, name, sign);
  }

  async audit(): Promise<SiteAudit> {
    return readAudit(await this.#site.session.exchange('audit', ['']), this.#site.backend);
  }

  async prune(tags: readonly string[]): Promise<void> {
    const answer = await this.#site.session.exchange('prune', [words(tags)], [], 180_000);
    const [status = '0', said = ''] = answerFields(answer, 'cancel')[0] ?? [];
    if (status !== '0')
      throw new GryphusError('site-busy', `Site ${this.name} cannot remove it: ${percentDecode(said).trim()}`);
  }

  async recall(keys: readonly AttemptKey[]): Promise<readonly RecalledAttempt[]> {
    const recalled: RecalledAttempt[] = [];
    for (let from = 0; from < keys.length; from += RECALLED_AT_ONCE) {
      const some = keys.slice(from, from + RECALLED_AT_ONCE);
      recalled.push(...readRecalled(await this.#site.session.exchange('recall', [some.join('\n')])));
    }
    return recalled;
  }

  async past(): Promise<SitePast> {
    return pastOf(await this.#site.session.hello());
  }

  async test(): Promise<readonly SiteStep[]> {
    const answer = await this.#site.session.exchange('probe', [this.#options.queue ?? ''], [], PROBE_MS);
    return readSteps(answer, this.#site.session.noise, this.#site.backend, Date.now() / 1000);
  }

  async lastMark(): Promise<QueueMark | undefined> {
    const { mark } = this.#options;
    return mark && markOf(await this.#site.session.hello(), mark.key);
  }

  async keepMark(now: QueueMark): Promise<void> {
    const { mark } = this.#options;
    if (mark) await this.#site.session.exchange('keep_mark', [''], [formatMark(now, mark.key)]);
  }

  async close(): Promise<void> {
    await Promise.all([this.#site.content.close(), this.#site.resultTransfer.close()]);
    await this.#site.packs?.close();
    await this.#site.session.close();
  }

  #seen(cursor: string | undefined): number | undefined {
    const [origin, change] = cursor?.split('.') ?? [];
    return origin === this.#origin && change !== undefined ? Number(change) : undefined;
  }

  async #sweep(): Promise<void> {
    const { session, now } = this.#site;
    if (now() - this.#sweptAt < SWEEP_EVERY) return;
    this.#sweptAt = now();
    const { commitWithin = 3600, cacheFor = 86_400, cacheSize } = this.#options;
    const cacheKb = cacheSize === undefined ? '-' : Math.floor(cacheSize / 1024);
    await session.exchange('sweep', [''], [commitWithin, cacheFor, cacheKb], 600_000);
  }
}

function preludeOf({ prelude = '', slots, parallelSubmits }: JobManagerOptions): string {
  return [
    prelude,
    ...(slots === undefined ? [] : [`GRYPHUS_SLOTS=${Math.max(1, Math.floor(slots))}`]),
    ...(parallelSubmits === undefined ? [] : [`GRYPHUS_SUBMITS=${Math.max(1, Math.floor(parallelSubmits))}`]),
  ].join('\n');
}
