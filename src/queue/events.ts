import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import { isQueueEvent, type QueueEvent } from '../job/events.ts';
import type { Cursor, EventEntry, NoticeInput, SubscribeOptions } from './api.ts';
import { encodeJson } from './record.ts';
import type { QueueContext } from './context.ts';

/** Entries in one exchange. */
const LIMIT = 1000;
/** How long one call of a subscriber blocks at the server, milliseconds. */
const BLOCK_MS = 5000;
/** Events kept for readers without a cursor. */
const KEPT = 10_000;

type Reply = [id: string, fields: string[]][];

/** The events after `from`, oldest first. */
export async function readEvents(
  context: QueueContext,
  from: string,
  options?: { readonly limit?: number; readonly blockMs?: number },
  signal?: AbortSignal,
): Promise<EventEntry[]> {
  return readStream(context, `${context.db.prefix}events`, isQueueEvent, from, options, signal);
}

/** The same for any stream whose entries have one field; skips those that are not such events. */
export async function readStream<E>(
  context: QueueContext,
  key: string,
  is: (event: unknown) => event is E,
  from: string,
  options?: ReadOptions,
  signal?: AbortSignal,
): Promise<Entry<E>[]> {
  for (let at = from; ; ) {
    const some = await readTexts(context, key, at, options, signal);
    const known = some.flatMap((one) => parsed(one, is));
    const last = some.at(-1);
    // A reader that was given nothing would ask again from the same place.
    if (known.length > 0 || last === undefined) return known;
    [at] = last;
  }
}

interface Entry<E> {
  readonly id: string;
  readonly event: E;
}

interface ReadOptions {
  readonly limit?: number;
  readonly blockMs?: number;
}

async function readTexts(
  context: QueueContext,
  key: string,
  from: string,
  { limit = LIMIT, blockMs = 0 }: ReadOptions = {},
  signal?: AbortSignal,
): Promise<Reply> {
  if (from !== '$') {
    const there = await context.db.run((redis) => redis.xread('COUNT', limit, 'STREAMS', key, from));
    if (there || blockMs <= 0) return entries(there);
  } else if (blockMs <= 0) {
    return [];
  }
  // A caller that has gone in the meantime must not wait.
  if (signal?.aborted) return [];
  return entries(
    await context.db.blocking((redis) => redis.xread('COUNT', limit, 'BLOCK', blockMs, 'STREAMS', key, from), signal),
  );
}

/** Continues while Redis is temporarily away; ends only with the signal. */
export async function* subscribe(
  context: QueueContext,
  { from, signal, only }: SubscribeOptions = {},
): AsyncIterable<EventEntry> {
  let at = from === '$' ? undefined : from;
  const over = () => signal?.aborted === true;
  while (!over()) {
    let some: Reply = [];
    try {
      at ??= await lastId(context);
      some = await readTexts(context, `${context.db.prefix}events`, at, { blockMs: BLOCK_MS }, signal);
    } catch (thrown) {
      if (over()) return;
      if (!(thrown instanceof GryphusError && thrown.retry === 'later') || context.db.closed) throw thrown;
      await sleep(200);
    }
    for (const text of some) {
      if (only?.test(text[1][1] ?? '') !== false) yield* parsed(text, isQueueEvent);
      [at] = text;
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
      return readEvents(context, at, options);
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

function entries(reply: readonly unknown[] | null): Reply {
  const stream = reply?.[0] as [key: string, entries: Reply] | undefined;
  return stream?.[1] ?? [];
}

function parsed<E>([id, fields]: Reply[number], is: (event: unknown) => event is E): Entry<E>[] {
  const event: unknown = JSON.parse(fields[1] ?? '');
  return is(event) ? [{ id, event }] : [];
}
