import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { asError, GryphusError } from '../../errors.ts';
import type { Attrs } from '../../job/attrs.ts';
import { type AttemptKey, formatJobId, type JobId } from '../../job/ids.ts';
import { readNumber, readString } from '../../job/values.ts';
import type { AttemptSpool, StreamName } from '../../staging/streams.ts';
import { isUrl } from '../../staging/url/file-url.ts';
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

/** A stream that grows at its destination while its job runs. */
export interface GrowingStream {
  readonly key: AttemptKey;
  readonly id: JobId;
  readonly attempt: number;
  readonly stream: StreamName;
  readonly attrs: Attrs;
  /** An absolute path, or a URL. */
  readonly to: string;
}

interface Pump {
  readonly of: GrowingStream;
  /** There may be bytes that have not been carried on. */
  fresh: boolean;
  stopped: boolean;
  /** Ends the pause between two looks. */
  wake: () => void;
  running: Promise<void>;
  storedAt: number;
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

/**
 * Carries what comes home of running jobs on to where it goes: appended to a file, or, for a URL, in parts beside it, with
 * a list of them that is replaced after each (G-Cat: Condor-G, section 6). What is in the spool is the buffer: a slow or
 * absent server delays nobody. The whole stream replaces the parts at the end.
 */
export class GrowingOutputs {
  readonly #options: GrowingOptions;
  readonly #pumps = new Map<string, Pump>();
  #closed = false;

  constructor(options: GrowingOptions) {
    this.#options = options;
  }

  /** There is more of a stream in the spool. */
  grew(of: GrowingStream): void {
    if (this.#closed) return;
    const name = `${of.key}/${of.stream}`;
    const pump = this.#pumps.get(name);
    if (pump) {
      pump.fresh = true;
      return;
    }
    const fresh: Pump = {
      of,
      fresh: true,
      stopped: false,
      wake: () => undefined,
      running: Promise.resolve(),
      storedAt: Date.now(),
    };
    this.#pumps.set(name, fresh);
    fresh.running = this.#run(fresh);
  }

  /** The site runs the attempt again from its beginning: what it wrote before counts no more. */
  async restart(key: AttemptKey, id: JobId): Promise<void> {
    await this.stop(key);
    for (const stream of ['stdout', 'stderr'] as const) {
      const sent = await this.#sent(id, stream);
      if (sent.parts.length > 0) await this.#save(id, stream, { ...sent, attempt: -1 });
    }
  }

  /** The attempt writes no more. Resolves when nothing of its streams is being carried on. */
  async stop(key: AttemptKey): Promise<void> {
    for (const stream of ['stdout', 'stderr'] as const) {
      const name = `${key}/${stream}`;
      const pump = this.#pumps.get(name);
      if (!pump) continue;
      pump.stopped = true;
      pump.wake();
      await pump.running;
      this.#pumps.delete(name);
    }
  }

  /** All of the stream is at its URL: removes the parts there. Rejects as uploads do. */
  async whole(id: JobId, stream: StreamName, url: string, proxy: string | undefined): Promise<void> {
    const { parts, stale } = await this.#sent(id, stream);
    const names = [...parts.map(({ name }) => name), ...stale];
    // Readers look for the list first.
    if (names.length > 0) await this.#options.outputs.remove(besideUrl(url, LIST), 'file', proxy);
    for (const name of names) await this.#options.outputs.remove(besideUrl(url, name), 'file', proxy);
    await rm(this.#place(id, stream), { recursive: true, force: true });
  }

  /** The job leaves the queue. Parts that no whole has replaced stay where they are. */
  async forget(id: JobId): Promise<void> {
    for (const stream of ['stdout', 'stderr'] as const) {
      const place = this.#place(id, stream);
      if (existsSync(place)) await rm(place, { recursive: true, force: true });
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#pumps.values()].map(({ of }) => this.stop(of.key)));
  }

  async #run(pump: Pump): Promise<void> {
    let failures = 0;
    const { of } = pump;
    const away = isUrl(of.to);
    while (!pump.stopped) {
      const everyMs = away ? this.#options.everyMs() : HOME_MS;
      let pauseMs = everyMs;
      if (pump.fresh) {
        pump.fresh = false;
        try {
          if (away) pump.fresh = await this.#store(pump);
          else await growHere(of.to, await this.#paths(of), readNumber(of.attrs, 'GryphusUmask'));
          failures = 0;
        } catch (thrown) {
          failures += 1;
          pump.fresh = true;
          pauseMs = Math.min(LONGEST_MS, everyMs * 2 ** failures);
          const facts = { job: formatJobId(of.id), to: of.to.replace(/[?#].*$/, ''), error: asError(thrown).message };
          if (failures === 1) this.#options.log('output of a running job cannot be carried on', facts);
          // At the end, the same error holds the job and tells its owner.
          if (!(thrown instanceof GryphusError) || thrown.code !== 'url-unreachable') return;
        }
      }
      if (pump.stopped) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs);
        pump.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** Stores what there is in whole parts; true if something is left for later. */
  async #store(pump: Pump): Promise<boolean> {
    const { of } = pump;
    const proxy = readString(of.attrs, 'x509userproxy');
    const put = (from: string, suffix: string) =>
      this.#options.outputs.put(from, besideUrl(of.to, suffix), proxy, { parents: true });
    const paths = await this.#paths(of);
    const sizes = await Promise.all(paths.map(async (path) => (await stat(path).catch(() => undefined))?.size ?? 0));
    const size = sizes.reduce((sum, one) => sum + one, 0);
    const base = paths.length > 1 ? (sizes[0] ?? 0) : 0;
    let sent = await this.#sent(of.id, of.stream);
    const place = this.#place(of.id, of.stream);
    await mkdir(place, { recursive: true, mode: 0o700 });
    if (sent.attempt !== of.attempt || endOf(sent.parts) > size) {
      sent = startOver(sent, of.attempt, base);
      await this.#save(of.id, of.stream, sent);
    }
    for (;;) {
      const offset = endOf(sent.parts);
      const fresh = await readAcross(paths, offset, LARGEST_PART);
      const bytes = pump.stopped ? 0 : nextPart(fresh, sent.parts, Date.now() - pump.storedAt);
      if (bytes === 0) return fresh.length > 0;
      const content = fresh.subarray(0, bytes);
      const name = suffixOf(sent.generation, offset);
      const part: Part = { name, offset, bytes, sha256: createHash('sha256').update(content).digest('hex') };
      const file = join(place, 'part');
      await writeFile(file, content, { mode: 0o600 });
      await put(file, name);
      sent = { ...sent, parts: [...sent.parts, part] };
      await this.#save(of.id, of.stream, sent);
      await writeFile(file, listOf(sent.parts), { mode: 0o600 });
      await put(file, LIST);
      pump.storedAt = Date.now();
      if (sent.stale.length === 0) continue;
      for (const stale of sent.stale) await this.#options.outputs.remove(besideUrl(of.to, stale), 'file', proxy);
      sent = { ...sent, stale: [] };
      await this.#save(of.id, of.stream, sent);
    }
  }

  /** What the job wrote before its last checkpoint, if any, and what this attempt has written. */
  async #paths({ id, attempt, stream, key }: GrowingStream): Promise<readonly string[]> {
    const { spool } = this.#options;
    const earlier = await spool.checkpoints.earlier(id, attempt, stream);
    return [...(earlier === undefined ? [] : [earlier.path]), spool.streamPath(key, stream)];
  }

  async #sent(id: JobId, stream: StreamName): Promise<Sent> {
    const text = await readFile(join(this.#place(id, stream), 'sent.json'), 'utf8').catch(() => undefined);
    return text === undefined ? NOTHING_SENT : SENT.parse(JSON.parse(text));
  }

  async #save(id: JobId, stream: StreamName, sent: Sent): Promise<void> {
    const path = join(this.#place(id, stream), 'sent.json');
    await writeFile(`${path}.new`, JSON.stringify(sent), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  #place(id: JobId, stream: StreamName): string {
    return join(this.#options.directory, `${formatJobId(id)}.${stream}`);
  }
}
