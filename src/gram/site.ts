import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gramAdapter } from '../config/gram-adapter.ts';
import type { GramTarget } from '../config/gram-resource.ts';
import type { Trust } from '../credentials/x509/trust.ts';
import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { AuditableSite, SiteAudit, SiteStep } from '../site/audit.ts';
import type {
  AttemptSpec,
  FetchOutcome,
  FetchRequest,
  Outcomes,
  PollAnswer,
  PollRequest,
  SiteFacts,
} from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { type Deferred, deferred } from '../util/deferred.ts';
import { attemptOf, Attempts } from './attempts.ts';
import { cancel, forget, takesEnd } from './cancel.ts';
import { GramClient, identityOf } from './client.ts';
import type { GramContext } from './context.ts';
import { Conversation } from './conversation.ts';
import { GramCredentials } from './credentials.ts';
import { openGassHandler, HOME_FILES, liveFile } from './gass-handler.ts';
import { GassPost } from './gass-post.ts';
import { inParallel } from './in-parallel.ts';
import { isOver } from './classify.ts';
import type { GramMessage } from './protocol.ts';
import { readResults, unpack, unpackStreams } from './results.ts';
import { type GramRecord, GramStore, isPromised } from './store.ts';
import { commit, prepare } from './submit.ts';

export interface GramSiteOptions {
  readonly name: string;
  readonly target: GramTarget;
  /** The directory, used by this site alone, for what must survive a restart. */
  readonly dir: string;
  readonly trust: () => Trust;
  readonly env?: NodeJS.ProcessEnv;
  /** Opened by a command that looks at the site while the GridManager may be running. */
  readonly visiting?: boolean;
  /** How long a job manager may be silent before it is asked, in milliseconds; 15 s by default. */
  readonly askEveryMs?: number;
  /** How long until the service counts as silent, in milliseconds; 60 s by default. */
  readonly timeoutMs?: number;
  /** How long to wait for the results of a job that is over, in milliseconds; 30 s by default. */
  readonly resultsMs?: number;
}

/** How soon to ask again when the answer is nearly there, in milliseconds. */
const SOON_MS = 1000;
/** The longest pause between repeated requests for something that does not come, in milliseconds. */
const LONGEST_PAUSE_MS = 60_000;

/** How much longer a proxy must live than that of running jobs to be sent to them, in seconds. */
const WORTH_SENDING_S = 60;

/** GRAM2 as a site: the grid does here what our own JobManager does elsewhere. */
export function openGramSite(options: GramSiteOptions): AuditableSite {
  return new Gt2Site(options);
}

class Gt2Site implements AuditableSite {
  readonly name: string;
  readonly #options: GramSiteOptions;
  readonly #store: GramStore;
  readonly #attempts: Attempts;
  readonly #credentials: GramCredentials;
  readonly #client: GramClient;
  readonly #gass: GassPost;
  readonly #conversation: Conversation;
  readonly #ctx: GramContext;
  readonly #origin = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
  #news: Deferred<void> = deferred();
  /** The origin of our open GASS server. */
  #home: string | undefined;
  readonly #opening = new Map<string, Promise<string>>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: GramSiteOptions) {
    this.name = options.name;
    this.#options = options;
    this.#store = new GramStore(options.dir);
    this.#attempts = new Attempts(this.#store, options.resultsMs);
    this.#credentials = new GramCredentials(join(options.dir, 'proxies'));
    const { target, trust, timeoutMs } = options;
    this.#client = new GramClient({ target, trust, now: Date.now, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    const gassHandler = openGassHandler({
      store: this.#store,
      came: (record) => this.#came(record),
      news: (message) => this.#received(message),
    });
    this.#gass = new GassPost({
      dir: options.dir,
      gassHandler,
      trust: options.trust,
      env: options.env ?? process.env,
      visiting: options.visiting === true,
    });
    this.#conversation = new Conversation({
      client: this.#client,
      store: this.#store,
      credentials: this.#credentials,
      rslNames: gramAdapter(target.service).rslNames,
      origin: () => this.#gass.origin ?? '',
    });
    this.#ctx = {
      store: this.#store,
      attempts: this.#attempts,
      conversation: this.#conversation,
      credentials: this.#credentials,
      ready: (proxy) => this.#ready(proxy),
    };
  }

  async describe(): Promise<SiteFacts> {
    const credential = this.#credentials.get('');
    await this.#client.ping(credential);
    const batchVersion = await this.#client.version(credential);
    const { host, service } = this.#options.target;
    const none = { os: '', arch: '', home: '', freeDiskKb: undefined };
    return { ...none, host, user: identityOf(credential), batch: service, batchVersion };
  }

  prepare(specs: readonly AttemptSpec[]): Promise<Outcomes> {
    return prepare(this.#ctx, specs);
  }

  commit(keys: readonly AttemptKey[]): Promise<Outcomes> {
    return commit(this.#ctx, keys);
  }

  async poll({ cursor, follow, waitMs = 0 }: PollRequest): Promise<PollAnswer> {
    crashPoint('jm.before-poll');
    const seen = this.#seen(cursor);
    const until = performance.now() + waitMs;
    if (this.#store.all().length > 0) await this.#ready();
    for (;;) {
      const news = this.#news.promise;
      await this.#ask(seen === undefined);
      const reports = this.#attempts.reports(seen);
      const chunks = this.#attempts.chunks(follow);
      if (seen === undefined || reports.length > 0 || chunks.length > 0 || performance.now() >= until) {
        crashPoint('jm.after-poll');
        return { cursor: `${this.#origin}.${this.#attempts.change}`, complete: seen === undefined, reports, chunks };
      }
      const pause = Math.min(until, this.#nextDue()) - performance.now();
      const stop = new AbortController();
      await Promise.race([news, delay(Math.max(pause, 10), undefined, { signal: stop.signal })]).catch(() => undefined);
      stop.abort();
    }
  }

  cancel(keys: readonly AttemptKey[], { onlyIfNotStarted = false } = {}): Promise<Outcomes> {
    return cancel(this.#ctx, keys, onlyIfNotStarted);
  }

  async fetch(requests: readonly FetchRequest[]): Promise<ReadonlyMap<AttemptKey, FetchOutcome>> {
    crashPoint('jm.before-fetch');
    const outcomes = new Map<AttemptKey, FetchOutcome>();
    for (const request of requests) {
      const path = (...names: string[]) => this.#store.path(request.key, ...names);
      const results = readResults(path(HOME_FILES.results));
      const known = this.#store.get(request.key) !== undefined;
      if (results) outcomes.set(request.key, await unpack(results, request));
      else if (known) outcomes.set(request.key, await unpackStreams((stream) => path(liveFile(stream)), request));
      else outcomes.set(request.key, { ok: false, refusal: GONE, missing: [] });
    }
    crashPoint('jm.after-fetch');
    return outcomes;
  }

  forget(keys: readonly AttemptKey[]): Promise<Outcomes> {
    return forget(this.#ctx, keys);
  }

  /**
   * The key is made here. The job managers of running jobs are sent the new proxy at once if it outlives theirs;
   * without this condition, every start of a GridManager would send one, because it delegates.
   */
  async delegate(name: string, sign: (requestPem: string) => Promise<string>): Promise<void> {
    const before = this.#credentials.endOf(name);
    const fresh = await this.#credentials.take(name, sign);
    if (this.#credentials.newest() === fresh) this.#gass.use(fresh);
    if (fresh.chain[0].notAfter - before < WORTH_SENDING_S) return;
    const running = this.#store
      .all()
      .filter(({ key, proxy }) => proxy === name && !isOver(this.#attempts.seen(key).state));
    await inParallel(running, async (record) => {
      // A job manager that does not answer gets the fresh proxy when it is next started.
      await this.#conversation.renew(record).catch(() => undefined);
    });
  }

  async audit(): Promise<SiteAudit> {
    const records = this.#store.all().map(({ key, phase, contact }) => {
      const seen = this.#attempts.seen(key);
      const promised = isPromised({ phase });
      const state = isOver(seen.state) ? 'ended' : seen.active ? 'started' : promised ? 'submitted' : 'prepared';
      return { key, submission: promised ? 1 : 0, batchId: contact, state } as const;
    });
    return { records, queued: [], queueError: undefined, content: { files: 0, kb: 0 }, others: [] };
  }

  async test(): Promise<readonly SiteStep[]> {
    const origin = await this.#ready();
    const version = await this.#client.version(this.#credentials.get(''));
    return [
      { name: 'job manager', ok: true, message: `${this.#options.target.service} ${version}` },
      { name: 'GASS server', ok: true, message: origin },
    ];
  }

  async close(): Promise<void> {
    this.#tell();
    await this.#gass.close();
  }

  /**
   * Opens our GASS server, at its last address if the gatekeeper cannot currently tell how it sees us. The gatekeeper
   * is asked with the caller's own proxy, because the refusal of another of the user's proxies must not block this one.
   */
  #ready(proxy = ''): Promise<string> {
    let mine = this.#opening.get(proxy);
    if (mine === undefined) {
      mine = this.#turn.then(() => this.#home ?? this.#open(proxy)).finally(() => this.#opening.delete(proxy));
      this.#opening.set(proxy, mine);
      this.#turn = mine.catch(() => undefined);
    }
    return mine;
  }

  async #open(proxy: string): Promise<string> {
    const credential = this.#credentials.get(proxy);
    const address = await this.#client.ping(credential).catch((thrown: unknown) => {
      const last = this.#gass.lastAddress;
      if (last === undefined || this.#store.all().length === 0) throw thrown;
      return last;
    });
    const origin = await this.#gass.open(credential, address);
    this.#home = origin;
    if (this.#options.visiting) return origin;
    const moved = this.#store.all().filter((record) => record.origin !== '' && record.origin !== origin);
    await inParallel(moved, async (record) => {
      // A job that cannot be told now is told when the delivery of its results fails.
      await this.#conversation.moved(record).catch(() => undefined);
    });
    return origin;
  }

  /** Asks about all attempts that are due and acts on the answers. Throws if the site answers about none of them. */
  async #ask(all: boolean): Promise<void> {
    const now = performance.now();
    const due = this.#store.all().filter(({ key, phase }) => {
      if (phase === 'new' || phase === 'lost') return false;
      return this.#attempts.verdict(key).report?.is !== 'ended' && (all || this.#attempts.due(key) <= now);
    });
    let answered = 0;
    let failure: GryphusError | undefined;
    await inParallel(due, async (record) => {
      try {
        await this.#askOne(record);
        answered += 1;
      } catch (thrown) {
        if (!(thrown instanceof GryphusError)) throw thrown;
        failure = thrown;
        this.#attempts.askAt(record.key, performance.now() + SOON_MS);
      }
    });
    if (failure && answered === 0) throw failure;
  }

  async #askOne(record: GramRecord): Promise<void> {
    const { key } = record;
    const answer = await this.#conversation.status(record);
    if (answer.is === 'answer') this.#attempts.hear(key, answer.message);
    else this.#attempts.note(key, { gone: true });
    const { action } = this.#attempts.verdict(key);
    this.#attempts.askAt(key, performance.now() + (this.#options.askEveryMs ?? 15_000));
    if (action === undefined) return;
    this.#attempts.askAt(key, performance.now() + SOON_MS);
    const present = this.#store.get(key);
    if (present === undefined || action === 'wait') return;
    if (action === 'give-up') {
      if (!(await takesEnd(this.#ctx, key, SOON_MS))) return;
      this.#store.update(key, { phase: 'lost', losses: present.losses + 1 });
      this.#attempts.note(key, {});
      return;
    }
    const { retried: before } = this.#attempts.seen(key);
    const retried = before + (action === 'deliver' ? 1 : 0);
    this.#attempts.askAt(key, performance.now() + Math.min(SOON_MS * 2 ** before, LONGEST_PAUSE_MS));
    const revived = await this.#conversation.revive(present);
    this.#attempts.note(key, { retried });
    if (revived.is === 'answer') this.#attempts.hear(key, revived.message);
    else this.#attempts.note(key, { gone: true });
  }

  #nextDue(): number {
    const dues = this.#store
      .all()
      .filter(({ key, phase }) => phase !== 'new' && this.#attempts.verdict(key).report?.is !== 'ended')
      .map(({ key }) => this.#attempts.due(key));
    return Math.min(...dues, Number.MAX_VALUE);
  }

  #seen(cursor: string | undefined): number | undefined {
    const [origin, change] = cursor?.split('.') ?? [];
    return origin === this.#origin && change !== undefined ? Number(change) : undefined;
  }

  #received(message: GramMessage): void {
    const record = attemptOf(message, this.#store.all());
    if (record === undefined) return;
    this.#attempts.hear(record.key, message);
    const { action } = this.#attempts.verdict(record.key);
    const again = action === 'deliver' && this.#attempts.seen(record.key).retried > 0;
    if (action !== undefined && !again) this.#attempts.askAt(record.key, performance.now());
    this.#tell();
  }

  #came({ key }: GramRecord): void {
    this.#attempts.note(key, {});
    this.#tell();
  }

  #tell(): void {
    const told = this.#news;
    this.#news = deferred();
    told.resolve();
  }
}

const GONE = { kind: 'gone', code: 'unknown-key', message: 'the site does not know the attempt (any more)' } as const;
