import type { Duplex } from 'node:stream';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { proof } from '../../src/pool/wire/auth.ts';
import { Channel, encodeFrame, type WireMessage } from '../../src/pool/wire/frames.ts';
import { Link } from '../../src/pool/worker/link.ts';
import {
  type FromCentralManager,
  type FromWorker,
  readFromCentralManager,
  readFromWorker,
} from '../../src/pool/wire/wire.ts';
import { until } from '../agent/agent.ts';
import { come, centralManagerWorkers, TOKEN } from './central-manager-of-workers.ts';
import { pair } from './wire-pair.ts';

const SIZE = { cpus: 1, memoryMb: 1000, diskKb: 1000, gpus: 0 };
const BLOB = { kind: 'blob', blob: { sha256: 'ab'.repeat(32), bytes: 3, path: '/in' } } as const;
const ENDING = {
  how: { kind: 'exited', code: 0 },
  startedAt: 1.5,
  endedAt: 2,
  stdoutBytes: 1,
  stderrBytes: 0,
} as const;

/** One of each kind, with every field that it may have. */
const WORKER_SAYS: readonly FromWorker[] = [
  { t: 'ad', ad: { LoadAvg: '1.0', Gone: null } },
  { t: 'started', key: 'a.1.0.1', at: 1.25 },
  { t: 'suspended', key: 'a.1.0.1' },
  {
    t: 'ended',
    key: 'a.1.0.1',
    ending: { ...ENDING, host: 'h', usage: { userCpuSeconds: 0.1, maxRssKb: 5 }, message: 'w' },
    inline: { stdout: 1, stderr: 0 },
    files: [{ name: 'f', bytes: 1, executable: false, sha256: 'ab' }],
  },
  { t: 'ended', key: 'a.1.0.1', ending: { how: { kind: 'by-site', cause: 'no-image', message: 'w' } } },
  { t: 'gone', key: 'a.1.0.1', why: 'behind', message: 'w' },
  { t: 'chunk', key: 'a.1.0.1', stream: 'stderr', offset: 7 },
  { t: 'shell-out', shell: 's', stream: 'stdout' },
  { t: 'shell-over', shell: 's', status: 255, message: 'w' },
  { t: 'ask', id: 1, what: 'blob', key: 'a.1.0.1', sha256: 'ab', offset: 0, bytes: 10 },
  { t: 'ask', id: 2, what: 'proxy', key: 'a.1.0.1', name: 'p', request: 'r' },
  { t: 'answer', id: 1, ok: false, message: 'w' },
  {
    t: 'answer',
    id: 1,
    ok: true,
    files: [],
    missing: ['x'],
    odd: [{ name: 'y', is: 'loop' }],
    usage: [{ key: 'a.1.0.1', cpuSeconds: 1, rssKb: 1, processes: 1 }],
  },
  { t: 'ping', n: 1 },
];
const CENTRAL_MANAGER_SAYS: readonly FromCentralManager[] = [
  { t: 'kind', id: 'k', ad: { Requirements: 'true' } },
  {
    t: 'base',
    id: 'b',
    spec: { executable: BLOB, args: ['a'], env: { A: 'b' }, inputs: [], joinStderr: false },
  },
  {
    t: 'start',
    key: 'a.1.0.1',
    claim: 'c',
    kind: 'k',
    size: SIZE,
    lease: 2400,
    ad: { A: '1' },
    slot: 'slot1_1@h',
    spec: {
      executable: { kind: 'there', path: '/bin/true' },
      args: [],
      env: {},
      stdin: BLOB,
      inputs: [
        { kind: 'file', name: 'i', file: BLOB, executable: true, restored: true },
        { kind: 'directory', name: 'd' },
      ],
      joinStderr: true,
      container: {
        image: { kind: 'file', name: 'x.sif', file: BLOB },
        docker: false,
        keepEntrypoint: true,
        targetDir: '/t',
        network: 'none',
        alwaysPull: false,
        binds: ['/b'],
      },
      proxy: 'p',
      cwd: '/c',
      shared: { cwd: '/c', executable: '/bin/true', stdin: '/s' },
      walltimeSeconds: 5,
      killSignal: 'SIGINT',
      vacateSeconds: 3,
    },
  },
  { t: 'start', key: 'a.1.0.1', claim: 'c', kind: 'k', size: SIZE, lease: 1, spec: { base: 'b', args: ['x'] } },
  { t: 'release', claim: 'c' },
  { t: 'cancel', key: 'a.1.0.1', how: 'vacate', message: 'w' },
  { t: 'resume', key: 'a.1.0.1' },
  { t: 'forget', keys: ['a.1.0.1'] },
  { t: 'follow', key: 'a.1.0.1', stdout: 0, stderr: 1 },
  { t: 'shell', shell: 's', key: 'a.1.0.1', command: 'c', tty: { rows: 1, cols: 2, term: 'xterm' } },
  { t: 'shell-in', shell: 's', end: true },
  { t: 'shell-size', shell: 's', rows: 1, cols: 2 },
  { t: 'shell-close', shell: 's' },
  { t: 'ask', id: 3, what: 'files', key: 'a.1.0.1', outputs: ['f'], digests: true },
  { t: 'ask', id: 4, what: 'read', key: 'a.1.0.1', path: 'stdout', offset: 0, bytes: 1 },
  { t: 'ask', id: 5, what: 'usage', keys: ['a.1.0.1'] },
  { t: 'drain', now: true, message: 'w' },
];

const asSent = (message: object): unknown => JSON.parse(JSON.stringify(message));

/** One of our messages, with one value replaced by another. */
function spoilt(says: readonly WireMessage[]): fc.Arbitrary<WireMessage> {
  return fc.tuple(fc.constantFrom(...says), fc.nat(), fc.jsonValue()).map(([message, at, value]) => {
    const copy = asSent(message) as Record<string, unknown>;
    const places: [Record<string, unknown>, string][] = [];
    const walk = (one: unknown) => {
      if (typeof one !== 'object' || one === null) return;
      for (const name of Object.keys(one)) {
        if (one !== copy || name !== 't') places.push([one as Record<string, unknown>, name]);
        walk((one as Record<string, unknown>)[name]);
      }
    };
    walk(copy);
    const [holder, name] = places[at % places.length] ?? [copy, 'x'];
    holder[name] = value;
    return copy as unknown as WireMessage;
  });
}

const anything = fc
  .record({ t: fc.string() })
  .chain((message) => fc.dictionary(fc.string(), fc.jsonValue()).map((more) => ({ ...more, ...message })));

describe('messages between a worker and the central manager', () => {
  it('are read as they were sent', () => {
    for (const message of WORKER_SAYS) expect(asSent(readFromWorker(asSent(message)))).toEqual(asSent(message));
    for (const message of CENTRAL_MANAGER_SAYS)
      expect(asSent(readFromCentralManager(asSent(message)))).toEqual(asSent(message));
  });

  it('are refused with what is wrong in them', () => {
    const bad = { t: 'ended', key: '../../etc', ending: ENDING };
    expect(() => readFromWorker(bad)).toThrow(/^invalid message: key: /);
    expect(() => readFromCentralManager({ t: 'start' })).toThrow(/invalid message/);
  });

  it('are refused if they have an unknown key, at any depth', () => {
    const file = { name: 'f', bytes: 1, executable: false, owner: 'me' };
    expect(() => readFromWorker({ t: 'ended', key: 'a.1.0.1', ending: ENDING, files: [file] })).toThrow(
      /files\.0: Unrecognized key: "owner"/,
    );
    expect(() => readFromCentralManager({ t: 'forget', keys: [], quickly: true })).toThrow(
      /Unrecognized key: "quickly"/,
    );
  });

  it('keep a name that an object has of itself', () => {
    const ad: unknown = JSON.parse('{"__proto__":"1","constructor":"2"}');
    expect(JSON.stringify(readFromWorker({ t: 'ad', ad }))).toBe('{"t":"ad","ad":{"__proto__":"1","constructor":"2"}}');
  });
});

describe('garbage from a worker', () => {
  it('ends its own connection, and no other', async () => {
    const { workers, logged } = centralManagerWorkers();
    const good = await come(workers, 'good');
    await fc.assert(
      fc.asyncProperty(fc.oneof(spoilt(WORKER_SAYS), anything), async (message) => {
        const bad = await come(workers, 'bad');
        const seen = good.heard.length;
        for (const bytes of encodeFrame(message)) bad.wire.write(bytes);
        good.channel.send({ t: 'ping', n: seen });
        await until('a pong', () => good.heard.length > seen || undefined, 5000);
        expect(good.heard.at(-1)).toEqual({ t: 'pong', n: seen });
        bad.wire.destroy();
      }),
      { numRuns: 60 },
    );
    for (const bytes of ['GET / HTTP/1.1\r\n\r\n', Buffer.alloc(8, 0xff)]) {
      const bad = await come(workers, 'bad');
      bad.wire.write(bytes);
      expect(await bad.closed).toMatch(/ended/);
    }
    expect(workers.askingOf('pilot/good')).toBeDefined();
    expect(logged.some((message) => message.includes('invalid message'))).toBe(true);
  }, 60_000);
});

describe('garbage from the central manager', () => {
  let link: Link | undefined;
  afterEach(() => link?.end('over'));

  it('ends the connection, and the worker dials again; what is no message of ours reaches nothing', async () => {
    const wires: Duplex[] = [];
    const taken: unknown[] = [];
    const downs: string[] = [];
    link = new Link({
      token: TOKEN,
      instance: 'w',
      boot: 'b',
      size: () => SIZE,
      longestRetryMs: 1,
      dial: () => {
        const [here, there] = pair();
        const centralManager = new Channel<FromWorker, FromCentralManager>(there, readFromWorker);
        centralManager.open(
          (message) => {
            if (message.t === 'hello')
              centralManager.send({
                t: 'challenge',
                nonce: 'n',
                proof: proof(TOKEN, 'central-manager', 'n', message.nonce),
              });
            else if (message.t === 'proof') {
              centralManager.send({ t: 'welcome', agent: 'a', site: 's', lease: 60, ping: 10 });
              wires.push(there);
            }
          },
          () => undefined,
        );
        return Promise.resolve(here);
      },
      ad: () => ({}),
      held: () => [],
      take: (message) => taken.push(message),
      onUp: () => undefined,
      onDown: (message) => downs.push(message),
      onDenied: () => undefined,
    });
    const made = link;
    made.open();
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(spoilt(CENTRAL_MANAGER_SAYS), anything, fc.constantFrom<WireMessage>(...CENTRAL_MANAGER_SAYS)),
        async (message) => {
          await until('the worker to be there', () => (made.up && wires.length > 0) || undefined, 5000);
          const [before, down] = [taken.length, downs.length];
          for (const bytes of encodeFrame(message)) wires.at(-1)?.write(bytes);
          // Some concern only the link itself, and neither side.
          if (!['pong', 'answer'].includes(message.t))
            await until('one or the other', () => taken.length > before || downs.length > down || undefined, 5000);
          for (const one of taken.slice(before))
            expect(() => readFromCentralManager(asSent(one as object))).not.toThrow();
        },
      ),
      { numRuns: 60 },
    );
    expect(taken.length).toBeGreaterThan(0);
    expect(downs.some((message) => message.includes('invalid message'))).toBe(true);
  }, 60_000);
});
