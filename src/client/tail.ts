import { open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import { formatAttemptKey, formatJobId } from '../job/ids.ts';
import { isEnd, LIFE } from '../job/life.ts';
import { readString } from '../job/values.ts';
import type { Queue } from '../queue/api.ts';
import { FOLLOWED } from '../queue/tables.ts';
import { AttemptSpool } from '../staging/streams.ts';
import { patiently } from './patiently.ts';
import type { TailRequest } from './types.ts';

const CHUNK = 64 * 1024;
/** How often a growing file is checked, and how long a sign of interest in it lasts, in milliseconds. */
const LOOK_MS = 200;
const INTEREST_MS = 10_000;

interface Where {
  /** In order: what the job wrote before its last checkpoint, then what this attempt wrote. */
  readonly paths: readonly string[];
  /** Nothing more will be added. */
  readonly whole: boolean;
  /** The attempt that writes the stream; `undefined` once the job has left the queue. */
  readonly attempt: number | undefined;
  /** The attempt whose checkpoint it continues from, and the file with the output up to then. */
  readonly from: { readonly attempt: number; readonly path: string } | undefined;
  /** The error if there is no such file; `undefined` if that is normal. */
  readonly without: string | undefined;
}

/**
 * A job's standard output or error as bytes: from what has come home while it runs, from its final place afterwards.
 * While following, it marks its interest in the queue so that the GridManager polls more often, and it waits while the
 * queue is down.
 */
export async function* tail(queue: Queue, spoolDir: string, request: TailRequest): AsyncGenerator<Uint8Array> {
  const spool = new AttemptSpool(spoolDir);
  const interest = new Interest(queue, formatJobId(request.id));
  const { follow, signal = new AbortController().signal } = request;
  const look = () => locate(queue, spool, request);
  let at: number | undefined;
  let before: Where | undefined;
  try {
    for (;;) {
      const where = follow ? await patiently(look, signal) : await look();
      if (!where || signal.aborted) return;
      if (follow && !where.whole) await interest.show();
      at ??= await start(where.paths, request.lastBytes);
      if (isAnother(before, where)) at = await goOn(at, before, where);
      before = where;
      let found = false;
      for await (const chunk of readFrom(where.paths, at)) {
        found = true;
        at += chunk.length;
        if (chunk.length > 0) yield chunk;
      }
      if (where.whole || !follow) {
        // The file may have moved to its final place while it was being read.
        const now = where.whole ? where : await look();
        if (now.whole !== where.whole || isAnother(where, now)) continue;
        if (!found && at === 0 && where.without !== undefined) throw new GryphusError('not-found', where.without);
        return;
      }
      await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    await interest.end();
  }
}

/** The next attempt writes a new stream from its first byte, unless it continues from a checkpoint. */
async function goOn(at: number, before: Where | undefined, { from }: Where): Promise<number> {
  if (from === undefined) return 0;
  return from.attempt >= (before?.attempt ?? 0) ? at : ((await stat(from.path).catch(() => undefined))?.size ?? 0);
}

function isAnother(before: Where | undefined, now: Where): boolean {
  return before?.attempt !== undefined && now.attempt !== undefined && before.attempt !== now.attempt;
}

/** A mark in the queue that someone follows a job; it expires if the follower dies. */
class Interest {
  readonly #queue: Queue;
  readonly #job: string;
  #shownAt = 0;

  constructor(queue: Queue, job: string) {
    this.#queue = queue;
    this.#job = job;
  }

  async show(): Promise<void> {
    if (Date.now() - this.#shownAt < INTEREST_MS / 2) return;
    this.#shownAt = Date.now();
    await FOLLOWED.set(this.#queue.kv, this.#job, this.#shownAt + INTEREST_MS);
  }

  async end(): Promise<void> {
    if (this.#shownAt > 0) await FOLLOWED.delete(this.#queue.kv, this.#job).catch(() => undefined);
  }
}

async function locate(queue: Queue, spool: AttemptSpool, { id, stream = 'stdout' }: TailRequest): Promise<Where> {
  const name = formatJobId(id);
  const [sighting] = await all(queue.look([{ ids: [id] }]));
  const job = sighting?.jobs[0];
  if (!sighting || !job) {
    throw new GryphusError('not-found', `There is no job ${name}.`, {
      suggestions: ['See `gryphus q` and `gryphus history`.'],
    });
  }
  const { state, attrs } = job;
  const final = readString(attrs, stream === 'stdout' ? 'Out' : 'Err');
  if (final === undefined || final === '/dev/null') {
    const command = stream === 'stdout' ? 'output' : 'error';
    throw new GryphusError('not-found', `Job ${name} keeps no ${stream}.`, {
      suggestions: [`Add a line \`${command} = FILE\` to its submit file.`],
    });
  }
  const home = resolve(readString(attrs, 'Iwd') ?? '/', final);
  const attempt = sighting.in === 'queue' ? sighting.jobs[0]?.attempt : undefined;
  const { does, shows } = LIFE[state];
  // A 'fetched' job may go on in another attempt; until that is decided, its streams are in the spool too.
  const atHome = isEnd(state) || (does === 'forget' && state !== 'requeueing');
  const atRest = shows === 'held' && state !== 'kept';
  const earlier = attempt === undefined ? undefined : await spool.checkpoints.earlier(id, attempt, stream);
  if (attempt === undefined || atHome || atRest) {
    const how = shows === 'held' || shows === 'removed' ? `is ${shows}, and its` : 'has ended, but its';
    return {
      paths: [home],
      whole: true,
      attempt,
      from: earlier,
      without: `Job ${name} ${how} ${stream} is not here: ${home}.`,
    };
  }
  const key = formatAttemptKey({ agent: queue.agent, ...id, attempt });
  const began = shows !== 'idle' || earlier !== undefined;
  return {
    paths: [...(earlier === undefined ? [] : [earlier.path]), spool.streamPath(key, stream)],
    whole: false,
    attempt,
    from: earlier,
    without: began ? undefined : `Job ${name} has not started: \`gryphus tail -f ${name}\` waits for it.`,
  };
}

async function all<T>(some: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of some) found.push(one);
  return found;
}

async function start(paths: readonly string[], lastBytes: number | undefined): Promise<number> {
  if (lastBytes === undefined) return 0;
  let size = 0;
  for (const path of paths) size += (await stat(path).catch(() => undefined))?.size ?? 0;
  return Math.max(0, size - lastBytes);
}

/** The files' contents from this byte on, in order; yields an empty chunk for a file that exists but has no more. */
async function* readFrom(paths: readonly string[], from: number): AsyncGenerator<Uint8Array> {
  let skip = from;
  for (const path of paths) {
    const file = await open(path, 'r').catch(() => undefined);
    if (!file) continue;
    try {
      const { size } = await file.stat();
      for (let at = Math.min(skip, size); ; ) {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK), 0, CHUNK, at);
        yield buffer.subarray(0, bytesRead);
        if (bytesRead === 0) break;
        at += bytesRead;
      }
      skip = Math.max(0, skip - size);
    } finally {
      await file.close();
    }
  }
}
