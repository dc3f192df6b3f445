import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { UserLogEvent } from '../../src/user-log/event.ts';
import { type Evidence, judge, type Seen } from './judge.ts';
import { jobOf } from './killer.ts';
import { type Run, readLedger, runName } from './ledger.ts';

const event = (event: object): UserLogEvent => ({ cluster: 1, proc: 0, at: 0, ...event }) as UserLogEvent;
const SUBMIT = event({ type: 'submit', host: 'x' });
const EXECUTE = event({ type: 'execute', host: 'x' });
const ABORTED = event({ type: 'aborted' });
const end = (exitCode: number) => event({ type: 'terminated', exitCode });
const run = (pid: number, start: number, code?: number): Run =>
  code === undefined ? { pid, start } : { pid, start, end: start + 1, last: { code } };
const NOBODY: Seen = { killed: new Set(), unwatched: new Set(), alive: new Map() };
const lived = (pid: number, until: number): Seen => ({ ...NOBODY, alive: new Map([[runName('1.0', pid), until]]) });

/** A correct job that exits with `code`. */
const good = (code = 0): Evidence => ({
  id: '1.0',
  accepted: true,
  removed: false,
  ad: { JobStatus: 4, ExitBySignal: false, ExitCode: code, Out: 'out.1.0' },
  runs: [run(10, 5, code)],
  events: [SUBMIT, EXECUTE, end(code)],
  output: 'out 1.0 10\n',
});
const faults = (job: Evidence, seen = NOBODY) => judge(job, seen).map(({ fault }) => fault);

describe('the judge', () => {
  it('has nothing to say of a good job, whatever its exit, and of one that was removed', () => {
    fc.assert(
      fc.property(fc.nat(255), (code) => {
        expect(judge(good(code), NOBODY)).toEqual([]);
      }),
    );
    const gone = { ...good(), removed: true, ad: { JobStatus: 3 }, events: [SUBMIT, ABORTED] };
    expect(faults(gone)).toEqual([]);
    expect(faults({ ...gone, runs: [], output: undefined })).toEqual([]);
  });

  it('has nothing to say of a job that ran again after the one before was dead', () => {
    expect(faults({ ...good(), runs: [run(9, 1), run(10, 5, 0)] }, lived(9, 4))).toEqual([]);
  });

  it('takes the signal of a killer for an end', () => {
    const killed = {
      ...good(),
      runs: [run(10, 5)],
      ad: { JobStatus: 4, ExitBySignal: true, ExitSignal: 9 },
      events: [SUBMIT, EXECUTE, event({ type: 'terminated', signal: 9 })],
    };
    expect(faults(killed, { ...NOBODY, killed: new Set([runName('1.0', 10)]) })).toEqual([]);
    expect(faults(killed, { ...NOBODY, unwatched: new Set(['1.0']) })).toEqual([]);
    expect(faults(killed), 'nobody killed it').toContain('false-end');
    const another = {
      ...killed,
      ad: { ...killed.ad, ExitSignal: 4 },
      events: [SUBMIT, EXECUTE, event({ type: 'terminated', signal: 4 })],
    };
    expect(faults(another, { ...NOBODY, killed: new Set([runName('1.0', 10)]) }), 'another signal').toContain(
      'false-end',
    );
  });

  it('does not take another job that has the same pid for this one', () => {
    const other: Seen = { ...NOBODY, alive: new Map([[runName('1.1', 9), 8]]) };
    expect(faults({ ...good(), runs: [run(9, 1), run(10, 5, 0)] }, other)).toEqual([]);
  });

  it.each<[string, Partial<Evidence>, string]>([
    ['is nowhere', { ad: undefined }, 'lost'],
    ['never ended', { ad: { JobStatus: 2 } }, 'lost'],
    ['was removed by nobody', { ad: { JobStatus: 3 }, events: [SUBMIT, ABORTED] }, 'false-end'],
    ['never ran', { runs: [], events: [SUBMIT, EXECUTE, end(0)] }, 'false-end'],
    ['ended otherwise', { runs: [run(10, 5, 3)] }, 'false-end'],
    [
      'is told of by a signal',
      { ad: { JobStatus: 4, ExitBySignal: true, ExitSignal: 2 }, runs: [run(10, 5, 130)] },
      'false-end',
    ],
    ['lacks its end', { events: [SUBMIT, EXECUTE] }, 'event'],
    ['lacks its submit', { events: [EXECUTE, end(0)] }, 'event'],
    ['ran, and nothing knows it', { accepted: false, ad: undefined }, 'lost'],
    ['executes before its submit', { events: [EXECUTE, SUBMIT, end(0)] }, 'event'],
    ['ends twice', { events: [SUBMIT, EXECUTE, end(0), end(0)] }, 'event'],
    ['goes on after its end', { events: [SUBMIT, end(0), EXECUTE] }, 'event'],
    ['ends otherwise in its log', { events: [SUBMIT, EXECUTE, end(1)] }, 'event'],
    ['has the output of another run', { output: 'out 1.0 9\n' }, 'output'],
    ['has no output', { output: undefined }, 'output'],
  ])('finds a job that %s', (_, wrong, fault) => {
    expect(faults({ ...good(), ...wrong })).toContain(fault);
  });

  it('finds two at once, by their lines and by what was seen', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.1, max: 0.9, noNaN: true }), (into) => {
        expect(faults({ ...good(), runs: [run(9, 4, 0), run(10, 4 + into, 0)] })).toContain('at-once');
        const seen = lived(9, 4 + into);
        expect(faults({ ...good(), runs: [run(9, 1), run(10, 4, 0)] }, seen)).toContain('at-once');
      }),
    );
  });
});

describe('the ledger', () => {
  it('gives each run its own end, also where a pid comes again', () => {
    const text = 's 1.0 7 1.00\ns 1.1 8 1.01\ne 1.0 7 2.00 3\nx 1.1 8 2.50 15\ns 1.0 7 9.00\n';
    expect(Object.fromEntries(readLedger(text))).toEqual({
      '1.0': [
        { pid: 7, start: 1, end: 2, last: { code: 3 } },
        { pid: 7, start: 9 },
      ],
      '1.1': [{ pid: 8, start: 1.01, end: 2.5, last: { signal: 15 } }],
    });
  });

  it('refuses what no program writes', () => {
    expect(() => readLedger('e 1.0 7 2.00 3\n')).toThrow('without a start');
    expect(() => readLedger('nonsense\n')).toThrow('not a line');
  });
});

describe("the killer's look", () => {
  it.each([
    ['/bin/sh ./condor_exec.exe 62.103 0.65 0 /tmp/a/work/ledger', '62.103'],
    ['/bin/sh /tmp/a/work/job.sh 4.0 2.10 s15 /tmp/a/work/ledger', '4.0'],
    ['/tmp/a/waiter/gryphus-waiter /bin/sh -c exec "$@" sh ./condor_exec.exe 5.40 5.55 0 /tmp/a/work/ledger', '5.40'],
    ['sh /tmp/a/bin/97/wrapper.sh /tmp/a RsfyqeGwmt.4.28.1 1 HUP INT', '4.28'],
  ])('knows the job of %s', (command, job) => {
    expect(jobOf(command)).toBe(job);
  });
});
