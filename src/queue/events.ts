import { STREAMS } from './answers.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import { isQueueEvent, type QueueEvent } from '../job/events.ts';
import type { Cursor, EventEntry, NoticeInput, SubscribeOptions } from './api.ts';
import { encodeJson } from './record.ts';
import type { QueueContext } from './context.ts';

/** Entries in one exchange. */
const LIMIT = 1000;
/** How long one call of a subscriber blocks at the server, milliseconds. */
const BLOCK_MS = 60_000;
/** Events kept for readers without a cursor. */
const KEPT = 10_000;

interface Entry<E> {
  readonly id: string;
  readonly event: E;
}

type Is<E> = (event: unknown) => event is E;

/** One entry of a stream, with all events of one change of the queue. */
interface Bundle {
  readonly id: string;
  /** Lines of JSON (prelude.lua). */
  readonly text: string;
  /** How many events. */
  readonly size: number;
  /** How many of them have been read before. */
  readonly skip: number;
}

/** Bundles read first: with how many events they have, this says how many to read then. */
const FIRST = 4;

/** The events after `from`, oldest first. May be more than `limit`, because bundles are not divided. */
export async function readEvents(
  context: QueueContext,
  from: string,
  options?: { readonly limit?: number; readonly blockMs?: number },
  signal?: AbortSignal,
): Promise<EventEntry[]> {
  return readStream(context, `${context.db.prefix}events`, isQueueEvent, from, options, signal);
}

/** The same for any such stream; skips what is no such event. */
export async function readStream<E>(
  context: QueueContext,
  key: string,
  is: Is<E>,
  from: string,
  options?: ReadOptions,
  signal?: AbortSignal,
): Promise<Entry<E>[]> {
  for (let at = from; ; ) {
    const some = await readBundles(context, key, at, options, signal);
    const known = some.flatMap((bundle) => [...entriesOf(bundle, is)]);
    const last = some.at(-1);
    // A reader that was given nothing would ask again from the same place.
    if (known.length > 0 || last === undefined) return known;
    at = last.id;
  }
}

interface ReadOptions {
  readonly limit?: number;
  readonly blockMs?: number;
}

async function readBundles(
  context: QueueContext,
  key: string,
  from: string,
  { limit = LIMIT, blockMs = 0 }: ReadOptions = {},
  signal?: AbortSignal,
): Promise<Bundle[]> {
  const found: Bundle[] = [];
  if (from !== '$') {
    const within = /^(\d+)-(\d+)\.(\d+)$/.exec(from);
    let at = within ? before(within[1] ?? '0', within[2] ?? '0') : from;
    let events = 0;
    for (let count = Math.min(FIRST, limit); ; ) {
      const start = at;
      const some = bundles(
        await context.db.run((redis) => redis.xread('COUNT', count, 'STREAMS', key, start)),
        within ? { id: `${within[1]}-${within[2]}`, skip: Number(within[3]) + 1 } : undefined,
      );
      found.push(...some);
      events += some.reduce((sum, { size, skip }) => sum + size - skip, 0);
      at = some.at(-1)?.id ?? at;
      if (some.length < count || events >= limit) break;
      count = Math.max(1, Math.floor(((limit - events) * found.length) / events));
    }
    if (found.length > 0 || blockMs <= 0) return found;
  } else if (blockMs <= 0) {
    return [];
  }
  return awaitBundles(context, key, from, { limit, blockMs }, signal);
}

/** The next ones as soon as there are some; none after `blockMs`. */
async function awaitBundles(
  context: QueueContext,
  key: string,
  from: string,
  { limit, blockMs }: Required<ReadOptions>,
  signal?: AbortSignal,
): Promise<Bundle[]> {
  // A caller that has gone in the meantime must not wait.
  if (signal?.aborted) return [];
  const blocking = context.db.blocking(
    (redis) => redis.xread('COUNT', Math.min(FIRST, limit), 'BLOCK', blockMs, 'STREAMS', key, from),
    signal,
  );
  return bundles(await blocking);
}

/** Continues while Redis is temporarily away; ends only with the signal. */
export async function* subscribe(
  context: QueueContext,
  { from, signal, only }: SubscribeOptions = {},
): AsyncIterable<EventEntry> {
  let at = from === '$' ? undefined : from;
  /** There was nothing more when it was last read. */
  let drained = false;
  const over = () => signal?.aborted === true;
  while (!over()) {
    let some: Bundle[] = [];
    try {
      at ??= await lastId(context);
      const key = `${context.db.prefix}events`;
      some = drained
        ? await awaitBundles(context, key, at, { limit: FIRST, blockMs: BLOCK_MS }, signal)
        : await readBundles(context, key, at, { blockMs: BLOCK_MS }, signal);
      drained = some.length === 0;
    } catch (thrown) {
      if (over()) return;
      if (!(thrown instanceof GryphusError && thrown.retry === 'later') || context.db.closed) throw thrown;
      await sleep(200);
    }
    for (const bundle of some) {
      for (const entry of entriesOf(bundle, isQueueEvent, only)) {
        yield entry;
        if (over()) return;
      }
      at = bundle.id;
      if (over()) return;
    }
  }
}

/** A durable position in the stream; a new one starts at `startAt`. */
export async function cursor(context: QueueContext, name: string, startAt: '0' | '$' = '0'): Promise<Cursor> {
  const key = `${context.db.prefix}cursors`;
  const start = startAt === '0' ? '0' : await lastId(context);
  await context.db.run((redis) => redis.hsetnx(key, name, start));
  return {
    name,
    read: async (options) => {
      const at = await context.db.run((redis) => redis.hget(key, name));
      if (at === null) throw new GryphusError('not-found', `The cursor ${name} was dropped.`);
      return readEvents(context, at, options, options?.signal);
    },
    save: async (id) => {
      await context.db.run((redis) => redis.hset(key, name, id));
    },
    drop: async () => {
      await context.db.run((redis) => redis.hdel(key, name));
    },
  };
}

export async function notice(context: QueueContext, input: NoticeInput): Promise<void> {
  const event: QueueEvent = { v: 1, at: context.now(), type: 'notice', ...input };
  const text = encodeJson(event);
  await context.db.run((redis) => redis.xadd(`${context.db.prefix}events`, '*', 'e', text));
}

export async function trimEvents(context: QueueContext, keep: number = KEPT): Promise<void> {
  await context.db.script('trim', [keep]);
}

export async function lastId(context: QueueContext): Promise<string> {
  const [last] = await context.db.run((redis) => redis.xrevrange(`${context.db.prefix}events`, '+', '-', 'COUNT', 1));
  return last?.[0] ?? '0';
}

function bundles(reply: unknown, had?: { readonly id: string; readonly skip: number }): Bundle[] {
  const [stream] = STREAMS.parse(reply) ?? [];
  return (stream?.[1] ?? []).map(([id, [, text = '', , size = '1']]) => ({
    id,
    text,
    size: Number(size),
    skip: had?.id === id ? had.skip : 0,
  }));
}

/** The start of a line that many jobs share. */
const SHARED = /^(\{"v":1,"at":\d+,"type":"[a-z]+"),"jobs":"([\d.,-]+)"/;

/**
 * The events of a bundle. The last has the bundle's id, so that a bundle is read again only by who stopped within it.
 * `only`: matched against a line before it is parsed.
 */
function* entriesOf<E>({ id, text, size, skip }: Bundle, is: Is<E>, only?: RegExp): Generator<Entry<E>> {
  let i = 0;
  for (const line of text.split('\n')) {
    const ranges = SHARED.exec(line)?.[2];
    const jobs = ranges === undefined ? [undefined] : jobsIn(ranges);
    const wanted = only?.test(line) !== false;
    const shared: object = wanted ? JSON.parse(line.replace(SHARED, '$1')) : {};
    for (const job of jobs) {
      i += 1;
      if (!wanted || i <= skip) continue;
      const event: unknown = job === undefined ? shared : { ...shared, job };
      if (is(event)) yield { id: i === size ? id : `${id}.${i - 1}`, event };
    }
  }
}

function jobsIn(ranges: string): string[] {
  return ranges.split(',').flatMap((range) => {
    const [, cluster, first, last = first] = /^(\d+)\.(\d+)(?:-(\d+))?$/.exec(range) ?? [];
    const length = Number(last) - Number(first) + 1;
    return Array.from({ length }, (_, i) => `${cluster}.${Number(first) + i}`);
  });
}

/** The id before which no other can be. */
function before(ms: string, sequence: string): string {
  return sequence === '0' ? `${BigInt(ms) - 1n}-18446744073709551615` : `${ms}-${BigInt(sequence) - 1n}`;
}
