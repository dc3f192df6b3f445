import { watchConfig } from '../config/credentials.ts';
import type { Paths } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import type { SiteRecord } from '../config/sites.ts';
import { renew } from '../credentials/renew.ts';
import type { Source } from '../credentials/sources.ts';
import type { CredentialAction, Memories, WatchConfig, Watched } from '../credentials/watch/model.ts';
import { renewed } from '../credentials/watch/renewal.ts';
import { look } from '../credentials/watch/watch.ts';
import { asError } from '../errors.ts';
import type { QueueEvent } from '../job/events.ts';
import type { EventEntry, Queue } from '../queue/api.ts';
import { CREDENTIAL_MEMORIES, WHOLE } from '../queue/tables.ts';
import type { Alarms } from './alarms.ts';
import { perform, tellFresh } from './credential-actions.ts';
import { inspectAll, remoteCopies, type CredentialInventory, inventory } from '../credentials/inventory/inventory.ts';
import type { Listener } from './listener.ts';

export interface CredentialWatchOptions {
  readonly queue: Queue;
  readonly paths: Paths;
  readonly loadSites: () => Promise<ReadonlyMap<string, SiteRecord>>;
  readonly settings: Settings;
  readonly alarms: Pick<Alarms, 'raise'>;
  readonly log: (message: string, facts?: object) => void;
}

/**
 * Files change without notification, so they are checked at these intervals: while jobs use them, while jobs are held,
 * and otherwise. Milliseconds.
 */
const IN_USE_MS = 5_000;
const HELD_MS = 1_000;
const UNUSED_MS = 30_000;
/**
 * How long the list of jobs is reused if there is no event, and how long if its configuration was found unchanged each time, milliseconds.
 */
const BELIEVED_MS = 60_000;
const REUSED_MS = 600_000;
/**
 * Changes within this time are handled together; after a long look, the queue is left alone for five times as long.
 * Milliseconds.
 */
const GATHER_MS = 200;
/** Time before a copy that was not renewed is requested again, milliseconds. */
const REFRESH_AGAIN_MS = 15_000;

/** The watch over credentials: looks at them (watch.ts) after every change, and when the time requires it. */
export class CredentialWatch implements Listener {
  readonly #options: CredentialWatchOptions;
  readonly #renewing = new Set<string>();
  readonly #refreshed = new Map<string, number>();
  readonly #versions = new Map<string, string>();
  #memories: Memories | undefined;
  #inventory:
    | (CredentialInventory & { readonly at: number; readonly made: number; readonly changes: number })
    | undefined;
  /** Incremented with each change of the jobs; an inventory records the value it started with. */
  #changes = 0;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #notBefore = 0;
  #looking: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: CredentialWatchOptions) {
    this.#options = options;
  }

  /** Looks at once, and then repeatedly until closed. */
  open(): void {
    this.#lookIn(0);
  }

  async hear(entries: readonly EventEntry[]): Promise<void> {
    if (!entries.some(({ event }) => matters(event))) return;
    this.#changes += 1;
    this.#lookIn(GATHER_MS);
  }

  /** Waits for a look in progress. A renewal in progress ends with the process and remains due. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  /** By the current settings. */
  get #config(): WatchConfig {
    return watchConfig(this.#options.settings);
  }

  #lookIn(ms: number): void {
    const at = Math.max(Date.now() + ms, this.#notBefore);
    if (this.#closed || at >= this.#dueAt) return;
    clearTimeout(this.#timer);
    this.#dueAt = at;
    this.#timer = setTimeout(
      () => {
        this.#dueAt = Number.POSITIVE_INFINITY;
        this.#looking = this.#looking.then(() => this.#lookSafely());
      },
      Math.max(0, at - Date.now()),
    );
  }

  async #lookSafely(): Promise<void> {
    if (this.#closed) return;
    const begun = Date.now();
    let again = IN_USE_MS;
    try {
      again = await this.#look();
    } catch (thrown) {
      this.#options.log('checking the credentials failed', { error: asError(thrown).message });
    }
    this.#notBefore = Date.now() + Math.min(5_000, 5 * (Date.now() - begun));
    this.#lookIn(again);
  }

  /** One look and the resulting actions. Returns the milliseconds until the next look. */
  async #look(): Promise<number> {
    const { queue } = this.#options;
    const found = await this.#inventoried();
    const credentials = inspectAll(found);
    const copies = found.jobs.length === 0 ? [] : await remoteCopies(queue);
    this.#memories ??= await this.#load();
    // Nothing is awaited between reading the memories and replacing them, because a renewal may finish at any time.
    const now = Math.floor(Date.now() / 1000);
    const memories = this.#memories;
    const seen = look({ now, credentials, jobs: found.jobs, copies, memories, config: this.#config });
    await this.#save(seen.memories);
    await this.#tellVersions(credentials, found);
    for (const action of seen.actions) {
      if (action.do === 'renew') this.#renew(action.credential, found);
      else if (this.#isTimeFor(action)) await perform(this.#options, action);
    }
    if (seen.actions.some(({ do: what }) => what === 'hold' || what === 'release')) this.#changes += 1;
    const clock = seen.nextLook === undefined ? Number.POSITIVE_INFINITY : seen.nextLook * 1000 - Date.now();
    const held = found.jobs.some((job) => job.where === 'held');
    const pause = held ? HELD_MS : found.jobs.length > 0 ? IN_USE_MS : UNUSED_MS;
    return Math.max(GATHER_MS, Math.min(clock, pause));
  }

  async #inventoried(): Promise<CredentialInventory> {
    const known = this.#inventory;
    if (known?.changes === this.#changes && Math.abs(Date.now() - known.at) < BELIEVED_MS) return known;
    const { queue, paths, loadSites } = this.#options;
    const begun = { at: Date.now(), changes: this.#changes };
    const isGood = known?.changes === begun.changes && Math.abs(begun.at - known.made) < REUSED_MS;
    const found = await inventory(queue, paths, loadSites, isGood ? known : undefined);
    this.#inventory = { ...found, ...begun, made: found === known ? known.made : begun.at };
    return this.#inventory;
  }

  /** If a credential has been replaced, jobs that were refused with the old one are tried again at once. */
  async #tellVersions(credentials: readonly Watched[], { jobs }: CredentialInventory): Promise<void> {
    const used = new Set(jobs.flatMap((job) => job.needs));
    let fresh: string | undefined;
    for (const { name, version, problem } of credentials) {
      if (problem !== undefined) continue;
      const known = this.#versions.get(name);
      this.#versions.set(name, version);
      if (known !== undefined && known !== version && used.has(name)) fresh = name;
    }
    if (fresh !== undefined) await tellFresh(this.#options.queue, undefined, `'${fresh}' is fresh.`);
  }

  #isTimeFor(action: CredentialAction): boolean {
    if (action.do !== 'refresh') return true;
    const what = `${action.site}\n${action.credential}\n${action.version}`;
    const last = this.#refreshed.get(what);
    if (last !== undefined && Math.abs(Date.now() - last) < REFRESH_AGAIN_MS) return false;
    this.#refreshed.set(what, Date.now());
    return true;
  }

  #renew(name: string, { sources }: CredentialInventory): void {
    const source = sources.get(name);
    if (!source || this.#renewing.has(name)) return;
    this.#renewing.add(name);
    void this.#renewNow(source);
  }

  async #renewNow(source: Source): Promise<void> {
    const { name } = source;
    const { log } = this.#options;
    try {
      const end = await renew(source);
      const problem = end.ok ? undefined : end.message;
      log(end.ok ? 'renewed' : 'not renewed', { credential: name, ...(problem && { problem }) });
      const memory = this.#memories?.[name];
      if (!memory) return;
      const renewal = renewed(memory.renewal, end.now, Math.floor(Date.now() / 1000), this.#config, problem);
      await this.#save({ ...this.#memories, [name]: { ...memory, renewal } });
    } catch (thrown) {
      log('a renewal was not recorded', { credential: name, error: asError(thrown).message });
    } finally {
      this.#renewing.delete(name);
      this.#lookIn(0);
    }
  }

  async #load(): Promise<Memories> {
    return (await CREDENTIAL_MEMORIES.get(this.#options.queue.kv, WHOLE)) ?? {};
  }

  async #save(memories: Memories): Promise<void> {
    const text = JSON.stringify(memories);
    const same = this.#memories !== undefined && JSON.stringify(this.#memories) === text;
    this.#memories = memories;
    if (!same) await CREDENTIAL_MEMORIES.set(this.#options.queue.kv, WHOLE, memories);
  }
}

/** Events after which jobs may use other credentials, or be at another site. */
function matters(event: QueueEvent): boolean {
  switch (event.type) {
    case 'submitted':
    case 'materialized':
    case 'transition':
    case 'routed':
    case 'edited':
    case 'cluster-edited':
      return true;
    case 'notice':
      return event.about === 'credential-renewed' && event.info?.['by'] !== 'watch';
    case 'candidate':
    case 'retired':
      return false;
  }
}
