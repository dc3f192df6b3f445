import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_CPU, type UserLogBody, type UserLogEvent } from '../../src/user-log/event.ts';
import { userLogJson, userLogXml } from '../../src/user-log/as-ad.ts';
import { SHAPES } from '../../src/user-log/shapes.ts';
import { oneLine } from '../../src/user-log/template.ts';
import { parseUserLog, printUserLog } from '../../src/user-log/text.ts';

const RECORDED = new URL('../fixtures/user-log/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, RECORDED), 'utf8');
const logs = readdirSync(RECORDED).filter((name) => name.endsWith('.log'));
const NOW = Date.UTC(2026, 10, 21);

const zone = process.env['TZ'];
beforeAll(() => {
  process.env['TZ'] = 'UTC';
});
afterAll(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

describe("HTCondor's own logs", () => {
  it.each(logs)('%s is read, and printed again byte for byte', (name) => {
    const text = read(name);
    const { events, taken, damaged } = parseUserLog(text, NOW);
    expect(damaged).toEqual([]);
    expect(taken).toBe(text.length);
    expect(events.filter((event) => event.type === 'other')).toEqual([]);
    const style = { legacy: name.startsWith('legacy'), utc: name.startsWith('utc'), subSecond: name.startsWith('utc') };
    expect(events.map((event) => printUserLog(event, style)).join('')).toBe(text);
  });

  it('tell what happened', () => {
    const { events } = parseUserLog(read('retries.log'), NOW);
    expect(events.map((event) => event.type)).toEqual([
      'submit',
      'execute',
      'image-size',
      'requeued',
      'execute',
      'requeued',
      'execute',
      'terminated',
    ]);
    expect(events[3]).toMatchObject({ cluster: 66, proc: 0, exitCode: 5, at: Date.UTC(2026, 10, 20, 23, 39, 19) });
    expect(parseUserLog(read('signal11.log'), NOW).events[3]).toMatchObject({
      signal: 11,
      resources: [
        { name: 'Cpus', request: 1, allocated: 1 },
        { name: 'Disk', usage: 1, request: 1_048_576, allocated: 1_048_576 },
        { name: 'Memory', usage: 6, request: 128, allocated: 128 },
        { name: 'TimeExecute', usage: 0 },
        { name: 'TimeSlotBusy', usage: 0 },
      ],
    });
  });

  it('have the JSON and XML forms that condor_wait -echo gives', () => {
    // condor_wait forgets the resources of an evicted job.
    const events = parseUserLog(read('hold-release-running.log'), NOW).events.map((event) =>
      event.type === 'evicted' ? { ...event, resources: [] } : event,
    );
    const json = events.map((event) => userLogJson(event)).join('');
    expect(json).toBe(read('hold-release-running.json'));
    expect(events.map((event) => userLogXml(event)).join('')).toBe(read('hold-release-running.xml'));
  });
});

/** As a line can represent it: a next-line character in it becomes a blank. */
const text = fc
  .string({ unit: 'grapheme' })
  .map(oneLine)
  .filter((s) => !s.startsWith('Partitionable Resources :'));
const line = fc.oneof(
  text,
  fc.constantFrom('...', '\t(0) No core file', 'Code 1 Subcode 0', '000 (001.000.000) x', 'ünï $(x) "q"'),
);
const word = fc.stringMatching(/^[A-Za-z][\w.@-]{0,20}$/);
const n = fc.nat({ max: 2_000_000_000 });
const cpu = fc.record({ user: n, system: n });
const spent = { runRemote: cpu, runLocal: cpu, sent: n, received: n };
const cents = fc.nat({ max: 100_000_000 }).map((v) => v / 100);
const row = fc.record(
  { name: word.map((w) => w.replaceAll(/\W/g, '_')), usage: cents, request: cents, allocated: cents },
  { requiredKeys: ['name'] },
);
const resources = fc.array(row, { minLength: 1, maxLength: 6 });
const props = fc.array(fc.tuple(fc.stringMatching(/^[A-Za-z_]\w{0,9}$/), line), { minLength: 1, maxLength: 4 });
const ending = fc.oneof(fc.record({ exitCode: n }), fc.record({ signal: n, core: line }, { requiredKeys: ['signal'] }));
const code = fc.record({ code: n, subcode: n });
const anyCode = fc.oneof(code, fc.constant({}));
const merge = (...parts: fc.Arbitrary<object>[]) =>
  fc.tuple(...parts).map((all) => Object.assign({}, ...all) as object);
const some = (shape: Record<string, fc.Arbitrary<unknown>>) => fc.record(shape, { requiredKeys: [] });

const bodies: Record<UserLogBody['type'], fc.Arbitrary<object>> = {
  submit: fc.oneof(fc.record({ host: line }), fc.record({ host: line, notes: line, userNotes: line })),
  execute: merge(fc.record({ host: line }), some({ slot: line, props })),
  checkpointed: fc.record({ runRemote: cpu, runLocal: cpu, sent: n }),
  evicted: merge(anyCode, fc.record(spent), some({ reason: line, resources, checkpointed: fc.constant(1 as const) })),
  requeued: merge(fc.record(spent), ending, some({ reason: fc.constant('policy says'), resources })),
  terminated: merge(
    fc.record({ ...spent, totalRemote: cpu, totalLocal: cpu, totalSent: n, totalReceived: n }),
    ending,
    some({ resources }),
  ),
  'image-size': merge(fc.record({ sizeKb: n }), some({ memoryMb: n, residentKb: n, proportionalKb: n })),
  'shadow-exception': fc.record({ message: line, sent: n, received: n }),
  generic: fc.record({ text: line }),
  aborted: some({ reason: line }),
  suspended: fc.record({ processes: n }),
  unsuspended: fc.constant({}),
  held: merge(fc.record({ reason: line }), code),
  released: some({ reason: line }),
  'node-execute': merge(fc.record({ node: n, host: line }), some({ slot: line, props })),
  'node-terminated': merge(
    fc.record({ node: n, ...spent, totalRemote: cpu, totalLocal: cpu, totalSent: n, totalReceived: n }),
    ending,
  ),
  'post-script': merge(fc.oneof(fc.record({ exitCode: n }), fc.record({ signal: n })), some({ node: line })),
  'remote-error': merge(fc.record({ daemon: word, host: line, message: line }), anyCode),
  disconnected: fc.record({ reason: line, host: line, address: word }),
  reconnected: fc.record({ host: line, address: line, starter: line }),
  'reconnect-failed': fc.record({ reason: line, host: line }),
  'resource-up': fc.record({ resource: line }),
  'resource-down': fc.record({ resource: line }),
  'grid-submit': fc.record({ resource: line, gridJobId: line }),
  'ad-information': fc.record({ ad: props }),
  'status-unknown': fc.constant({}),
  'status-known': fc.constant({}),
  'stage-in': fc.constant({}),
  'stage-out': fc.constant({}),
  'attribute-changed': fc.record({ name: word, from: word, to: line }),
  'attribute-set': fc.record({ name: word, to: line }),
  'pre-skip': fc.record({ node: line }),
  'cluster-submit': merge(fc.record({ host: line }), some({ notes: line })),
  'cluster-remove': fc.record({ materialized: n, items: n, end: line }),
  'factory-paused': fc.record({ reason: line, code: n }),
  'factory-resumed': fc.record({ reason: line }),
  'file-transfer': merge(fc.record({ phase: line }), some({ queuedSeconds: n, host: line })),
  other: fc.record({
    number: fc.integer({ min: 100, max: 999 }),
    lines: fc.array(fc.constant('x y'), { minLength: 1 }),
  }),
};
const stamp = fc.record({ cluster: n, proc: n, at: fc.integer({ min: 0, max: 4_000_000_000 }).map((s) => s * 1000) });
const anyEvent = fc
  .constantFrom(...Object.keys(bodies))
  .chain((type) => merge(stamp, fc.constant({ type }), bodies[type as UserLogBody['type']]))
  .map((event) => event as UserLogEvent);

describe('print and parse', () => {
  it('give every event back, whatever its texts are, and any run of them', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 4 }), (events) => {
        const log = events.map((event) => printUserLog(event)).join('');
        expect(parseUserLog(log, NOW)).toEqual({ events, taken: log.length, damaged: [] });
      }),
      { numRuns: 1000 },
    );
  });

  it('know every type', () => {
    expect(Object.keys(bodies).sort()).toEqual([...Object.keys(SHAPES), 'other'].sort());
  });

  it('keep a text from ending its line or its event', () => {
    const held = {
      type: 'held',
      cluster: 1,
      proc: 0,
      at: 0,
      reason: 'a\n...\nb\r\u2028c\0',
      code: 1,
      subcode: 0,
    } as const;
    expect(parseUserLog(printUserLog(held)).events).toEqual([{ ...held, reason: 'a ... b  c ' }]);
  });

  it('leave an unfinished event for later, and pass over damage', () => {
    const event = { type: 'aborted', cluster: 7, proc: 1, at: 1000, reason: 'x' } as const;
    const whole = printUserLog(event);
    for (let cut = 0; cut < whole.length; cut++) {
      expect(parseUserLog(whole + whole.slice(0, cut))).toMatchObject({ events: [event], taken: whole.length });
    }
    expect(parseUserLog(`${whole}torn\nlines\n...\n${whole}`)).toMatchObject({ events: [event, event], damaged: [4] });
  });

  it('read what a later version writes', () => {
    const now = NOW;
    const { events } = parseUserLog('005 (001.000.000) 2026-11-20 23:35:16 Job terminated differently.\n...\n', now);
    expect(events).toMatchObject([{ type: 'other', number: 5, lines: ['Job terminated differently.'] }]);
    expect(parseUserLog('001 (001.000.000) 12/31 23:00:00 Job executing on host: h\n...\n', now).events[0]?.at).toBe(
      Date.UTC(2025, 11, 31, 23),
    );
  });

  it('print a job that used nothing', () => {
    const event = {
      type: 'evicted',
      cluster: 1,
      proc: 0,
      at: 0,
      runRemote: NO_CPU,
      runLocal: NO_CPU,
      sent: 0,
      received: 0,
    } as const;
    expect(printUserLog(event)).toContain(
      'Job was evicted.\n\t(0) CPU times\n\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote',
    );
  });
});
