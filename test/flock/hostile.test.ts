import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClassAd, Matchmaker, parseExpr } from '../../src/classad/api.ts';
import { AGREEMENT_KEYS, type Agreement } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import { goingRequirements } from '../../src/flock/clauses.ts';
import { type FlockMessage, type Of, readFlockMessage } from '../../src/flock/flock-wire.ts';
import { incoming, isInside } from '../../src/flock/incoming.ts';
import { outgoingAd, outgoingSpec, SERVES_INPUTS } from '../../src/flock/outgoing.ts';
import { Bench, Rate } from '../../src/flock/rate.ts';
import type { AttrTexts } from '../../src/job/attrs.ts';
import { adFrom } from '../../src/pool/wire/ads.ts';
import { FRAME_LIMITS } from '../../src/pool/wire/direct-wire.ts';
import { FrameReader } from '../../src/pool/wire/frames.ts';
import { JUST_TRUE } from '../pool/just-true.ts';

const AGREEMENT: Agreement = { ...presets(AGREEMENT_KEYS), name: 'p', keyFile: '/k', from: true };
const BLOB = { sha256: 'a'.repeat(64), bytes: 3, path: '' };

function asked(more: Partial<Of<'prepare'>> = {}): Of<'prepare'> {
  const size = { cpus: 1, memoryMb: 10, diskKb: 10, gpus: 0 };
  return {
    t: 'prepare',
    key: 'theirs.1.0.1',
    round: 1,
    user: 'ann',
    ad: {},
    size,
    lease: 2400,
    spec: JUST_TRUE,
    ...more,
  };
}

const clauseOf = (more: Partial<Of<'prepare'>>) => {
  const made = incoming(asked(more), AGREEMENT, 'theirs');
  return 'clause' in made ? made.clause : undefined;
};

describe('a request of a partner', () => {
  it('is made one of a stranger, whatever it says of itself', () => {
    const ad = {
      Owner: '"root"',
      AcctGroup: '"vip"',
      NiceUser: 'false',
      JobPrio: '1000',
      FlockFrom: 'undefined',
      FlockRunAs: '"root"',
      FlockNetwork: 'true',
      WantCheckpoint: 'true',
      WantIOProxy: 'true',
      x509userproxy: '"/tmp/x"',
      ConcurrencyLimits: '"LICENSE"',
      MaxJobRetirementTime: '999999',
      Kept: '7',
    };
    const made = incoming(asked({ ad }), AGREEMENT, 'theirs');
    if ('clause' in made) throw new Error(made.message);
    expect(made.request).toMatchObject({ owner: 'ann@p', prio: 0, leased: true, lease: 800 });
    expect(made.request.ad).toMatchObject({
      Owner: '"ann@p"',
      AcctGroup: '"nice-user"',
      JobPrio: '0',
      FlockFrom: '"p"',
      FlockRunAs: '"auto"',
      FlockNetwork: 'false',
      MaxJobRetirementTime: '0',
      Kept: '7',
    });
    for (const name of ['WantCheckpoint', 'WantIOProxy', 'x509userproxy', 'ConcurrencyLimits'])
      expect(made.request.ad).not.toHaveProperty(name);
  });

  it('is not passed on: no pool gives another what it has borrowed', () => {
    const ad = { FlockFrom: 'undefined', flockfrom: 'undefined', WantFlock: 'true', Requirements: 'true' };
    const made = incoming(asked({ ad }), AGREEMENT, 'theirs');
    if ('clause' in made) throw new Error(made.message);
    const going = parseExpr(goingRequirements(AGREEMENT, undefined), 'old');
    const mayGo = (job: AttrTexts) => new Matchmaker({ now: 0 }).evaluate(going, new ClassAd(), adFrom(job));
    expect(mayGo({ Owner: '"ann"' })).toBe(true);
    expect(mayGo(made.request.ad)).toBe(false);
  });

  it.each([
    ['the key of another agent', { key: 'ours.1.0.1' }, 'key'],
    ['an impossible user', { user: 'a\nb' }, 'user'],
    ['a quoted user', { user: 'a" || "' }, 'user'],
    ['no cores', { size: { cpus: 0, memoryMb: 1, diskKb: 1, gpus: 0 } }, 'job'],
    ['half a core', { size: { cpus: 0.5, memoryMb: 1, diskKb: 1, gpus: 0 } }, 'job'],
    [
      'a file of ours as an input',
      {
        spec: {
          ...JUST_TRUE,
          inputs: [{ kind: 'file', name: 'x', file: { kind: 'there', path: '/etc/shadow' }, executable: false }],
        },
      },
      'job',
    ],
    [
      'a URL as an input',
      {
        spec: {
          ...JUST_TRUE,
          inputs: [{ kind: 'file', name: 'x', file: { kind: 'url', url: 'http://10.0.0.1/' }, executable: false }],
        },
      },
      'job',
    ],
    [
      'an input above its directory',
      {
        spec: {
          ...JUST_TRUE,
          inputs: [{ kind: 'file', name: '../x', file: { kind: 'blob', blob: BLOB }, executable: false }],
        },
      },
      'job',
    ],
    ['a directory above', { spec: { ...JUST_TRUE, inputs: [{ kind: 'directory', name: 'a/../../x' }] } }, 'job'],
    ['our standard input', { spec: { ...JUST_TRUE, stdin: { kind: 'there', path: '/etc/shadow' } } }, 'job'],
    ['a relative program', { spec: { ...JUST_TRUE, executable: { kind: 'there', path: 'x' } } }, 'job'],
    ['a directory of ours', { spec: { ...JUST_TRUE, cwd: '/root' } }, 'job'],
    ['our shared files', { spec: { ...JUST_TRUE, shared: { cwd: '/root', executable: '/bin/sh' } } }, 'job'],
    ['a proxy', { spec: { ...JUST_TRUE, proxy: 'x' } }, 'job'],
    ['words as a signal', { spec: { ...JUST_TRUE, killSignal: 'SIGTERM; reboot' } }, 'job'],
    ['a huge ad', { ad: { A: 'x'.repeat(300_000) } }, 'job'],
    ['many attributes', { ad: Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`A${i}`, '1'])) }, 'job'],
    ['an impossible attribute', { ad: { 'A B': '1' } }, 'job'],
    ['Requirements that change with time', { ad: { Requirements: 'time() > 0' } }, 'job'],
    [
      'an input of two sizes',
      {
        spec: {
          ...JUST_TRUE,
          executable: { kind: 'blob', blob: BLOB },
          stdin: { kind: 'blob', blob: { ...BLOB, bytes: 4 } },
        },
      },
      'job',
    ],
  ] as const)('with %s is refused', (_, more, clause) => {
    expect(clauseOf(more as Partial<Of<'prepare'>>)).toBe(clause);
  });

  it('never has a name that leaves the sandbox', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('..', '.', 'a', '', 'b'), { maxLength: 6 }), (parts) => {
        const name = parts.join('/');
        if (!isInside(name)) return;
        expect(new URL(name, 'file:///x/y/z/').pathname.startsWith('/x/y/z/')).toBe(true);
        expect(name.split('/')).not.toContain('..');
      }),
    );
  });
});

const BIO = { partner: 'bio', beyond: [], agents: ['theirs'] };

describe('what a partner gets of a job', () => {
  it('has no path, mail address or proxy of ours', () => {
    const ad = outgoingAd(
      BIO,
      {
        Iwd: '"/home/me"',
        UserLog: '"/home/me/l"',
        NotifyUser: '"me@x"',
        Kept: '1',
        Gone: '2',
        x509userproxy: '"/tmp/x"',
      },
      { Gone: null, GryphusSecret: '1', Environment: '"A=secret"' },
    );
    expect(ad).toEqual({ Kept: '1', [SERVES_INPUTS]: 'true' });
    const spec = outgoingSpec({
      ...JUST_TRUE,
      executable: { kind: 'blob', blob: { ...BLOB, path: '/home/me/x' } },
      shared: { cwd: '/home/me', executable: '/home/me/x' },
    });
    expect(JSON.stringify(spec)).not.toContain('/home/me');
  });
});

describe('a job that asks for a partner by its name', () => {
  it('is not asked for that name by the machines there', () => {
    const requirements = '(TARGET.FlockPool == "bio" || flockpool =?= undefined) && MY.FlockPool > 1 && x.FlockPool';
    const { Requirements, Rank, Note } = outgoingAd(BIO, {
      Requirements: requirements,
      Rank: 'ifThenElse(FlockPool == "bio", {FlockPool}[0] == "bio", 0)',
      Note: '"FlockPool"',
    });
    expect(Requirements).toBe('("bio" == "bio" || "bio" =?= undefined) && MY.FlockPool > 1 && x.FlockPool');
    expect(Rank).toBe('ifThenElse("bio" == "bio",{ "bio" }[0] == "bio",0)');
    expect(Note).toBe('"FlockPool"');
  });
});

describe('the wire', () => {
  it('takes nothing but messages, whatever the bytes', () => {
    const taken: FlockMessage[] = [];
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 5 }), (pieces) => {
        const reader = new FrameReader((message) => void taken.push(readFlockMessage(message)), FRAME_LIMITS);
        try {
          for (const piece of pieces) reader.push(Buffer.from(piece));
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: 'protocol-error' });
        }
      }),
      { numRuns: 5000 },
    );
    expect(taken).toEqual([]);
  });

  it('takes no message that has been changed beyond its schema', () => {
    const good: FlockMessage[] = [
      asked(),
      { t: 'hello', version: 1, agent: 'a', name: 'n' },
      { t: 'ended', key: 'a.1.0.1', round: 1, ending: { how: { kind: 'exited', code: 0 } } },
      { t: 'list', kinds: [] },
    ];
    fc.assert(
      fc.property(fc.constantFrom(...good), fc.string(), fc.anything({ maxDepth: 2 }), (message, name, value) => {
        const changed: unknown = { ...message, [name]: value };
        try {
          const read = readFlockMessage(changed);
          expect(JSON.stringify(read)).toBe(JSON.stringify(changed));
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: 'protocol-error' });
        }
      }),
      { numRuns: 3000 },
    );
  });

  it('takes no frame of more than a megabyte of text, before it has come', () => {
    const reader = new FrameReader(() => undefined, FRAME_LIMITS);
    const head = Buffer.alloc(8);
    head.writeUInt32BE(1 << 30, 0);
    expect(() => reader.push(head)).toThrow(/too long/);
  });
});

describe('limits', () => {
  it('refill at their rate', () => {
    let now = 0;
    const rate = new Rate(10, 5, () => now);
    expect([1, 2, 3, 4, 5, 6].map(() => rate.take(1))).toEqual([true, true, true, true, true, false]);
    now = 100;
    expect([rate.take(1), rate.take(1)]).toEqual([true, false]);
  });

  it('bench for longer each time, up to an hour', () => {
    let now = 0;
    const bench = new Bench(() => now);
    const times: number[] = [];
    for (let i = 0; i < 9; i++) {
      bench.strike('it lied');
      times.push(bench.left);
      now += bench.left * 1000;
    }
    expect(times).toEqual([60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]);
    now += 86_400_001;
    bench.strike('it starts nothing', false);
    expect([bench.left, bench.isShut]).toEqual([60, false]);
    bench.strike('it lied');
    bench.strike('it starts nothing', false);
    now += 119_999;
    expect([bench.left > 0, bench.isShut]).toEqual([true, true]);
    now += 1;
    expect([bench.left > 0, bench.isShut]).toEqual([true, false]);
  });
});
