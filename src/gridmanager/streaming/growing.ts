import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { asError, GryphusError } from '../../errors.ts';
import type { Attrs } from '../../job/attrs.ts';
import { type AttemptKey, formatJobId, type JobId } from '../../job/ids.ts';
import { readNumber, readString } from '../../job/values.ts';
import { hashOf } from '../../staging/grown-files.ts';
import { makeParents } from '../../staging/place.ts';
import type { AttemptSpool, StreamName } from '../../staging/streams.ts';
import { isUrl } from '../../staging/url/file-url.ts';
import { writeWhole } from '../../util/private-file.ts';
import { Turns } from '../../util/turns.ts';
import type { UrlOutputs } from '../url-outputs.ts';
import { growHere } from './grow-here.ts';
import {
  besideUrl,
  endOf,
  LARGEST_PART,
  LIST,
  listOf,
  nextPart,
  NOTHING_SENT,
  type Part,
  SENT,
  type Sent,
  startOver,
  suffixOf,
} from './parts.ts';
import { readAcross } from './read-across.ts';

/** A stream of a job, or a file in its directory. */
export type Source =
  | { readonly kind: StreamName; readonly name?: undefined }
  | { readonly kind: 'output'; readonly name: string };

/** Something that grows at its destination while its job runs. */
export interface Growing {
  readonly key: AttemptKey;
  readonly id: JobId;
  readonly attempt: number;
  readonly of: Source;
  /** How often the job has begun it anew. */
  readonly version: number;
  readonly attrs: Attrs;
  /** An absolute path, or a URL. */
  readonly to: string;
  /** A directory that exists: those below it on the way to the path are made. */
  readonly base?: string;
}

interface Pump {
  what: Growing;
  /** There may be bytes that have not been carried on. */
  fresh: boolean;
  stopped: boolean;
  /** There is no more to do until it grows again. */
  rests: boolean;
  /** Ends the pause between two looks. */
  wake: () => void;
  running: Promise<void>;
  storedAt: number;
  /** The version that is at home. */
  written: number;
}

export interface GrowingOptions {
  readonly spool: AttemptSpool;
  readonly outputs: Pick<UrlOutputs, 'put' | 'remove'>;
  /** Where it is written down what has been stored. */
  readonly directory: string;
  /** How often new output is stored at a URL, milliseconds. */
  readonly everyMs: () => number;
  readonly log: (message: string, facts?: object) => void;
}

/** How often new output is written to a file at home, milliseconds. */
const HOME_MS = 200;
/** The longest pause after an upload has failed, milliseconds. */
const LONGEST_MS = 60_000;
/** How many of them are written or stored at the same time. */
const AT_ONCE = 8;

/**
 * Carries what comes home of running jobs on to where it goes: appended to a file, or, for a URL, in parts beside it, with
 * a list of them that is replaced after each (G-Cat: Condor-G, section 6). What is in the spool is the buffer: a slow or
 * absent server delays nobody. The whole stream replaces the parts at the end.
 */
export class GrowingOutputs {
  readonly #options: GrowingOptions;
  readonly #pumps = new Map<AttemptKey, Map<string, Pump>>();
  readonly #home = new Turns(() => AT_ONCE);
  readonly #away = new Turns(() => AT_ONCE);
  /** Attempts of which the log has said that something cannot be carried on. */
  readonly #told = new Set<AttemptKey>();
  #closed = false;

  constructor(options: GrowingOptions) {
    this.#options = options;
  }

  /** There is more of it in the spool. */
  grew(what: Growing): void {
    if (this.#closed) return;
    const pumps = this.#pumps.get(what.key) ?? new Map<string, Pump>();
    this.#pumps.set(what.key, pumps);
    const place = placeOf(what.of);
    const pump = pumps.get(place);
    if (pump) {
      pump.what = what;
      pump.fresh = true;
      if (pump.rests) pump.running = this.#run(pump);
      return;
    }
    const fresh: Pump = {
      what,
      fresh: true,
      stopped: false,
      rests: false,
      wake: () => undefined,
      running: Promise.resolve(),
      storedAt: Date.now(),
      written: 0,
    };
    pumps.set(place, fresh);
    fresh.running = this.#run(fresh);
  }

  /** The site runs the attempt again from its beginning: what it wrote before counts no more. */
  async restart(key: AttemptKey, id: JobId): Promise<void> {
    await this.stop(key);
    for (const place of await this.#places(id)) {
      const sent = await this.#sent(id, place);
      if (sent.parts.length > 0) await this.#save(id, place, { ...sent, attempt: -1 });
    }
  }

  /** The attempt writes no more. Resolves when nothing of it is being carried on. */
  async stop(key: AttemptKey): Promise<void> {
    const pumps = [...(this.#pumps.get(key)?.values() ?? [])];
    for (const pump of pumps) {
      pump.stopped = true;
      pump.wake();
    }
    for (const pump of pumps) await pump.running;
    this.#pumps.delete(key);
    this.#told.delete(key);
  }

  /** All of it is at its URL: removes the parts there. Rejects as uploads do. */
  async whole(id: JobId, of: Source, url: string, proxy: string | undefined): Promise<void> {
    const place = placeOf(of);
    const { parts, stale } = await this.#sent(id, place);
    const names = [...parts.map(({ name }) => name), ...stale];
    // Readers look for the list first.
    if (names.length > 0) await this.#options.outputs.remove(besideUrl(url, LIST), 'file', proxy);
    for (const name of names) await this.#options.outputs.remove(besideUrl(url, name), 'file', proxy);
    await rm(this.#place(id, place), { recursive: true, force: true });
  }

  /** The job leaves the queue. Parts that no whole has replaced stay where they are. */
  async forget(id: JobId): Promise<void> {
    for (const kind of ['stdout', 'stderr', FILES]) {
      const place = this.#place(id, kind);
      if (existsSync(place)) await rm(place, { recursive: true, force: true });
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#pumps.keys()].map((key) => this.stop(key)));
  }

  async #run(pump: Pump): Promise<void> {
    pump.rests = false;
    let failures = 0;
    const away = isUrl(pump.what.to);
    while (!pump.stopped) {
      const everyMs = away ? this.#options.everyMs() : HOME_MS;
      let pauseMs = everyMs;
      pump.fresh = false;
      try {
        const left = await (away ? this.#away : this.#home).run(async () => {
          if (pump.stopped) return false;
          return away ? this.#store(pump) : this.#append(pump);
        });
        pump.fresh ||= left;
        failures = 0;
      } catch (thrown) {
        failures += 1;
        pump.fresh = true;
        pauseMs = Math.min(LONGEST_MS, everyMs * 2 ** failures);
        this.#tell(pump.what, asError(thrown).message);
        // At the end, the same error holds the job and tells its owner.
        if (!(thrown instanceof GryphusError) || thrown.code !== 'url-unreachable') return;
      }
      if (pump.stopped) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs);
        pump.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      pump.rests = !pump.fresh;
      if (pump.rests) return;
    }
  }

  #tell({ key, id, to }: Growing, error: string): void {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    const facts = { job: formatJobId(id), to: to.replace(/[?#].*$/, ''), error };
    this.#options.log('output of a running job cannot be carried on', facts);
  }

  async #append(pump: Pump): Promise<boolean> {
    const { what } = pump;
    const umask = readNumber(what.attrs, 'GryphusUmask');
    if (what.base !== undefined) await makeParents(what.base, what.to, umask);
    const anew = pump.written !== what.version;
    await growHere(what.to, await this.#paths(what), umask, anew);
    pump.written = what.version;
    return false;
  }

  /** Stores what there is in whole parts; true if something is left for later. */
  async #store(pump: Pump): Promise<boolean> {
    const { what } = pump;
    const { id, attempt, version } = what;
    const place = placeOf(what.of);
    const proxy = readString(what.attrs, 'x509userproxy');
    const put = (from: string, suffix: string) => this.#options.outputs.put(from, besideUrl(what.to, suffix), proxy);
    const paths = await this.#paths(what);
    const sizes = await Promise.all(paths.map(async (path) => (await stat(path).catch(() => undefined))?.size ?? 0));
    const size = sizes.reduce((sum, one) => sum + one, 0);
    const base = paths.length > 1 ? (sizes[0] ?? 0) : 0;
    let sent = await this.#sent(id, place);
    if (sent.attempt !== attempt || sent.version !== version || endOf(sent.parts) > size) {
      sent = startOver(sent, { attempt, version }, base);
      await this.#save(id, place, sent);
    }
    for (;;) {
      const offset = endOf(sent.parts);
      const fresh = await readAcross(paths, offset, LARGEST_PART);
      const bytes = pump.stopped ? 0 : nextPart(fresh, sent.parts, Date.now() - pump.storedAt);
      if (bytes === 0) return fresh.length > 0;
      const content = fresh.subarray(0, bytes);
      const name = suffixOf(sent.generation, offset);
      const part: Part = { name, offset, bytes, sha256: createHash('sha256').update(content).digest('hex') };
      const file = join(this.#place(id, place), 'part');
      await writeFile(file, content, { mode: 0o600 });
      await put(file, name);
      sent = { ...sent, parts: [...sent.parts, part] };
      await this.#save(id, place, sent);
      await writeFile(file, listOf(sent.parts), { mode: 0o600 });
      await put(file, LIST);
      pump.storedAt = Date.now();
      if (sent.stale.length === 0) continue;
      for (const stale of sent.stale) await this.#options.outputs.remove(besideUrl(what.to, stale), 'file', proxy);
      sent = { ...sent, stale: [] };
      await this.#save(id, place, sent);
    }
  }

  /** What the job wrote before its last checkpoint, if any, and what this attempt has written. */
  async #paths({ id, attempt, of, version, key }: Growing): Promise<readonly string[]> {
    const { spool } = this.#options;
    if (of.kind === 'output') return [spool.grown.path(key, of.name, version)];
    const earlier = await spool.checkpoints.earlier(id, attempt, of.kind);
    return [...(earlier === undefined ? [] : [earlier.path]), spool.streamPath(key, of.kind)];
  }

  async #sent(id: JobId, place: string): Promise<Sent> {
    const text = await readFile(join(this.#place(id, place), SENT_FILE), 'utf8').catch(() => undefined);
    return text === undefined ? NOTHING_SENT : SENT.parse(JSON.parse(text));
  }

  async #save(id: JobId, place: string, sent: Sent): Promise<void> {
    const directory = this.#place(id, place);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const path = join(directory, SENT_FILE);
    writeWhole(path, JSON.stringify(sent));
  }

  #place(id: JobId, place: string): string {
    return join(this.#options.directory, `${formatJobId(id)}.${place}`);
  }

  async #places(id: JobId): Promise<string[]> {
    const files = await readdir(this.#place(id, FILES)).catch(() => []);
    return ['stdout', 'stderr', ...files.map((file) => join(FILES, file))];
  }
}

const SENT_FILE = 'sent.json';
/** Where all files of a job have their places. */
const FILES = 'files';

function placeOf({ kind, name }: Source): string {
  return kind === 'output' ? join(FILES, hashOf(name)) : kind;
}
