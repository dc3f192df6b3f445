import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import { type AttemptKey, parseAttemptKey } from '../job/ids.ts';
import type { FromDesk, FromWorker, RunSpec } from './wire.ts';

/* What the messages of wire.ts look like, for whoever reads them off a connection. What is not known of is dropped. */

const text = z.string();
const flag = z.boolean();
const count = z.int().nonnegative();
const amount = z.number().nonnegative();
const key = z.custom<AttemptKey>((value) => typeof value === 'string' && parseAttemptKey(value) !== undefined);
const keys = z.array(key);
const texts = z.array(text);
const stream = z.enum(['stdout', 'stderr']);
const ad = z.record(text, text.nullable());
const size = z.object({ cpus: amount, memoryMb: amount, diskKb: amount, gpus: amount });
const maybe = z.exactOptional;
const tagged = <T extends string>(t: T) => z.object({ t: z.literal(t) });

const blob = z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/), bytes: count, path: text });
const siteFile = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('blob'), blob }),
  z.object({ kind: z.literal('there'), path: text }),
  z.object({ kind: z.literal('url'), url: text }),
]);
const inputFile = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('file'),
    name: text,
    file: siteFile,
    executable: flag,
    restored: maybe(z.literal(true)),
  }),
  z.object({ kind: z.literal('directory'), name: text }),
]);
const container = z.object({
  image: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('registry'), name: text }),
    z.object({ kind: z.literal('there'), path: text }),
    z.object({ kind: z.literal('file'), name: text, file: siteFile }),
  ]),
  docker: flag,
  keepEntrypoint: flag,
  targetDir: maybe(text),
  network: maybe(text),
  alwaysPull: flag,
  binds: texts,
});
const runSpec = z
  .object({
    executable: siteFile,
    args: texts,
    env: z.record(text, text),
    // Where there is none, JSON has no word of it.
    stdin: siteFile.optional(),
    inputs: z.array(inputFile),
    joinStderr: flag,
    container: maybe(container),
    proxy: maybe(text),
    cwd: maybe(text),
    shared: maybe(z.object({ cwd: text, executable: text, stdin: maybe(text) })),
    walltimeSeconds: maybe(amount),
    checkpoint: maybe(z.object({ code: z.int(), files: texts })),
    killSignal: maybe(text),
    vacateSeconds: maybe(amount),
  })
  .transform(({ stdin, ...others }): RunSpec => ({ ...others, stdin }));

const usage = z.object({
  userCpuSeconds: maybe(z.number()),
  systemCpuSeconds: maybe(z.number()),
  maxRssKb: maybe(z.number()),
  diskKb: maybe(z.number()),
});
const cause = z.enum([
  'timeout',
  'node-fail',
  'preempted',
  'out-of-memory',
  'cancelled',
  'boot-fail',
  'deadline',
  'cannot-start',
  'no-image',
  'vanished',
]);
const ending = z.object({
  how: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('exited'), code: z.int() }),
    z.object({ kind: z.literal('signaled'), signal: z.int(), coreDumped: maybe(flag) }),
    z.object({ kind: z.literal('by-site'), cause, words: text }),
  ]),
  startedAt: maybe(z.number()),
  endedAt: maybe(z.number()),
  host: maybe(text),
  usage: maybe(usage),
  stdoutBytes: maybe(count),
  stderrBytes: maybe(count),
  words: maybe(text),
});
const held = z.object({
  key,
  is: z.enum(['staging', 'running', 'suspended', 'ended']),
  startedAt: maybe(z.number()),
  ending: maybe(ending),
});
const files = z.array(z.object({ name: text, bytes: count, executable: flag, sha256: maybe(text) }));
const terminal = z.object({ rows: count, cols: count, term: text });

const ask = z.discriminatedUnion('what', [
  tagged('ask').extend({ id: count, what: z.literal('blob'), key, sha256: text, offset: count, bytes: count }),
  tagged('ask').extend({
    id: count,
    what: z.literal('files'),
    key,
    outputs: z.union([z.literal('new'), texts]),
    digests: flag,
  }),
  tagged('ask').extend({ id: count, what: z.literal('read'), key, path: text, offset: count, bytes: count }),
  tagged('ask').extend({ id: count, what: z.literal('usage'), keys }),
  tagged('ask').extend({ id: count, what: z.literal('proxy'), key, name: text, request: text }),
]);
const odd = z.array(z.object({ name: text, is: z.enum(['pipe', 'device', 'socket', 'loop']) }));
const runUsage = z.array(z.object({ key, cpuSeconds: z.number(), rssKb: z.number(), processes: z.number() }));
const answer = z.discriminatedUnion('ok', [
  tagged('answer').extend({
    id: count,
    ok: z.literal(true),
    files: maybe(files),
    missing: maybe(texts),
    odd: maybe(odd),
    usage: maybe(runUsage),
  }),
  tagged('answer').extend({ id: count, ok: z.literal(false), words: text }),
]);

const message = <T extends string, S extends z.core.$ZodLooseShape>(t: T, shape: S) =>
  z.object({ t: z.literal(t), ...shape });

const fromWorker: z.ZodType<FromWorker> = z.discriminatedUnion('t', [
  message('hello', { version: z.number(), token: text, instance: z.string().min(1), nonce: text }),
  message('proof', { proof: text, ad, size, boot: text, attempts: z.array(held) }),
  message('ad', { ad }),
  message('started', { key, at: z.number() }),
  z.object({ t: z.enum(['suspended', 'resumed']), key }),
  message('ended', {
    key,
    ending,
    inline: maybe(z.object({ stdout: count, stderr: count })),
    files: maybe(files),
  }),
  message('gone', { key, why: z.enum(['claim', 'input', 'cancelled', 'never-started', 'behind']), words: text }),
  message('chunk', { key, stream, offset: count }),
  message('shell-out', { shell: text, stream }),
  message('shell-over', { shell: text, status: z.int(), words: maybe(text) }),
  ask,
  answer,
  message('ping', { n: z.number() }),
  message('bye', { words: text }),
]);

const fromDesk: z.ZodType<FromDesk> = z.discriminatedUnion('t', [
  message('challenge', { nonce: text, proof: text }),
  message('denied', { words: text }),
  message('welcome', { agent: text, site: text, lease: amount, ping: z.number().positive() }),
  message('kind', { id: text, ad }),
  message('base', { id: text, spec: runSpec }),
  message('start', {
    key,
    claim: text,
    kind: text,
    size,
    spec: z.union([z.object({ base: text, args: texts }), runSpec]),
    lease: amount,
    ad: maybe(ad),
    slot: maybe(text),
  }),
  message('release', { claim: text }),
  message('cancel', { key, how: z.enum(['remove', 'vacate', 'if-not-started']), words: text }),
  z.object({ t: z.enum(['suspend', 'resume']), key }),
  message('forget', { keys }),
  message('follow', { key, stdout: count, stderr: count }),
  message('shell', { shell: text, key, command: maybe(text), tty: maybe(terminal) }),
  message('shell-in', { shell: text, end: flag }),
  message('shell-size', { shell: text, rows: count, cols: count }),
  message('shell-close', { shell: text }),
  ask,
  answer,
  message('pong', { n: z.number() }),
  message('drain', { now: flag, words: text }),
]);

export function readFromWorker(value: unknown): FromWorker {
  return read(fromWorker, value);
}

export function readFromDesk(value: unknown): FromDesk {
  return read(fromDesk, value);
}

/** So many characters of what is wrong are said. */
const MOST = 120;

function read<T>(schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value);
  if (!error) return data;
  const words = error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  throw new GryphusError('protocol-error', `a message is not one of ours: ${words.slice(0, MOST)}`);
}
