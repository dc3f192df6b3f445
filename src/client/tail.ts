import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { GryphusError } from '../errors.ts';
import { formatAttemptKey, formatJobId, type JobId } from '../job/ids.ts';
import { isEnd, LIFE } from '../job/life.ts';
import { readString } from '../job/values.ts';
import type { Queue } from '../queue/api.ts';
import { AttemptSpool } from '../staging/streams.ts';
import type { TailRequest } from './types.ts';

const CHUNK = 64 * 1024;
/** How often a growing file is looked at, and how long a sign of interest in it lasts, milliseconds. */
const LOOK_MS = 200;
const INTEREST_MS = 10_000;

interface Where {
  readonly path: string;
  /** Nothing will be added. */
  readonly whole: boolean;
  /** Whose stream it is; `undefined` once the job has left the queue. */
  readonly attempt: number | undefined;
}

/**
 * A job's standard output or error by byte: from what has come home while it runs, from its final place afterwards.
 * While it follows, it says so in the queue, and the GridManager asks the site more often.
 */
export async function* tail(queue: Queue, spoolDir: string, request: TailRequest): AsyncGenerator<Uint8Array> {
  const spool = new AttemptSpool(spoolDir);
  const interest = new Interest(queue, formatJobId(request.id));
  let at: number | undefined;
  let attempt: number | undefined;
  try {
    while (!request.signal?.aborted) {
      const where = await locate(queue, spool, request);
      if (request.follow && !where.whole) await interest.show();
      at ??= await start(where.path, request.lastBytes);
      // The next attempt writes a stream of its own, from its first byte.
      if (attempt !== undefined && where.attempt !== undefined && where.attempt !== attempt) at = 0;
      attempt = where.attempt ?? attempt;
      for await (const chunk of readFrom(where.path, at)) {
        at += chunk.length;
        yield chunk;
      }
      if (where.whole || !request.follow) return;
      await new Promise((done) => setTimeout(done, LOOK_MS));
    }
  } finally {
    await interest.end();
  }
}

/** A sign in the queue that somebody follows a job; it fades by itself when the follower dies. */
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
    await this.#queue.kv.set('followed', this.#job, String(this.#shownAt + INTEREST_MS));
  }

  async end(): Promise<void> {
    if (this.#shownAt > 0) await this.#queue.kv.delete('followed', this.#job).catch(() => undefined);
  }
}

async function locate(queue: Queue, spool: AttemptSpool, { id, stream = 'stdout' }: TailRequest): Promise<Where> {
  const [job] = await queue.get([id]);
  const attrs = job?.attrs ?? (await ended(queue, id));
  const final = readString(attrs, stream === 'stdout' ? 'Out' : 'Err');
  if (final === undefined || final === '/dev/null') {
    const command = stream === 'stdout' ? 'output' : 'error';
    throw new GryphusError('not-found', `Job ${formatJobId(id)} keeps no ${stream}.`, {
      suggestions: [`Give its submit file a line \`${command} = FILE\`.`],
    });
  }
  const home = resolve(readString(attrs, 'Iwd') ?? '/', final);
  if (
    !job ||
    isEnd(job.state) ||
    (LIFE[job.state].does === 'forget' && job.state !== 'requeueing') ||
    job.state === 'fetched'
  )
    return { path: home, whole: true, attempt: job?.attempt };
  const atRest = LIFE[job.state].shows === 'held' && job.state !== 'kept';
  if (atRest) return { path: home, whole: true, attempt: job?.attempt };
  return {
    path: spool.streamPath(formatAttemptKey({ agent: queue.agent, ...id, attempt: job.attempt }), stream),
    whole: false,
    attempt: job.attempt,
  };
}

async function ended(queue: Queue, id: JobId): Promise<{ get(name: string): string | undefined }> {
  for await (const job of queue.history.read({ ids: [id], limit: 1 })) return job.attrs;
  throw new GryphusError('not-found', `There is no job ${formatJobId(id)}.`, {
    suggestions: ['See `gryphus q` and `gryphus history`.'],
  });
}

async function start(path: string, lastBytes: number | undefined): Promise<number> {
  if (lastBytes === undefined) return 0;
  const file = await open(path, 'r').catch(() => undefined);
  if (!file) return 0;
  try {
    return Math.max(0, (await file.stat()).size - lastBytes);
  } finally {
    await file.close();
  }
}

async function* readFrom(path: string, from: number): AsyncGenerator<Uint8Array> {
  const file = await open(path, 'r').catch(() => undefined);
  if (!file) return;
  try {
    for (let at = from; ; ) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK), 0, CHUNK, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}
