import { describe, expect, it } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import { materialize } from '../../src/submit/api.ts';
import { jobs, refusal, submit, world } from './support.ts';

const SWEEP = `executable = job.sh
arguments = $(Cluster).$(Process) $(x) $ENV(HERE)
output = out.$(Process)
getenv = HERE
+Owner2 = "$(x)"
queue 2 x in (a b c)`;
const here = { world: world({}, { HERE: 'home', SECRET: 'no' }) };

describe('a cluster', () => {
  it('makes its jobs as they are read', () => {
    const cluster = submit('executable = job.sh\narguments = $(Process)\nqueue 100000000');
    expect(cluster.total).toBe(100_000_000);
    const [first, second] = cluster.procs({ from: 99_999_998 });
    expect([first?.attrs['Args'], second?.proc]).toEqual(['"99999998"', 99_999_999]);
  });

  it('keeps in a job only what differs', () => {
    const cluster = submit(SWEEP, here);
    expect([...cluster.procs()].map(({ attrs }) => Object.keys(attrs).sort())).toEqual([
      ['ProcId'],
      ['Args', 'Out', 'ProcId'],
      ['Args', 'Out', 'Owner2', 'ProcId'],
      ['Args', 'Out', 'Owner2', 'ProcId'],
      ['Args', 'Out', 'Owner2', 'ProcId'],
      ['Args', 'Out', 'Owner2', 'ProcId'],
    ]);
    expect(cluster.clusterAd).not.toHaveProperty('ProcId');
    expect(Object.keys(cluster.clusterAd).filter((name) => name.startsWith('#'))).toEqual([]);
  });

  it('learns its number after the parsing', () => {
    const cluster = submit(SWEEP, here);
    expect([...cluster.procs({ cluster: 42, count: 2 })].map(({ attrs }) => attrs['Args'])).toEqual([
      '"42.0 a home"',
      '"42.1 a home"',
    ]);
  });

  it('makes again what depends on what differs', () => {
    const ads = jobs('request_memory = $(m)\n+Wants = $(Process)\nqueue m in (undefined 0 2G)');
    expect(ads.map((ad) => [ad['RequestMemory'], /Memory >= /.test(ad['Requirements'] ?? '')])).toEqual([
      [undefined, false],
      ['0', false],
      ['2048', true],
    ]);
  });

  it('expands ten thousand jobs with arguments of their own in a moment', () => {
    const start = process.cpuUsage();
    const made = [...submit('executable = job.sh\narguments = $(Process) --seed=$(Process)\nqueue 10000').procs()]
      .length;
    const { user, system } = process.cpuUsage(start);
    expect(made).toBe(10_000);
    // 0.1 s on the machine where it was measured; the limit only catches a change of complexity.
    expect((user + system) / 1e6).toBeLessThan(1.5);
  });
});

describe('late materialization', () => {
  const late = (lines: string) => submit(`executable = job.sh\n${lines}`);

  it('is asked for by the description, or by the caller', () => {
    expect(late('queue 5').late).toBeUndefined();
    expect(late('max_materialize = 2\nqueue 5').late).toEqual({ maxMaterialize: 2 });
    expect(late('max_materialize = -1\nmax_idle = 3\nqueue 5').late).toEqual({ maxIdle: 3 });
    expect(submit('executable = job.sh\nqueue 5', { factory: true }).late).toEqual({});
  });

  it('makes the same jobs from the digest as at once', () => {
    const cluster = submit(SWEEP, here);
    const digest = cluster.digest();
    const atOnce = [...cluster.procs({ cluster: 7 })];
    const lot = (fromProc: number, count: number) => materialize(digest, { cluster: 7, fromProc, count });
    expect([...lot(0, 6).procs]).toEqual(atOnce);
    expect([...lot(3, 2).procs]).toEqual(atOnce.slice(3, 5));
    expect([lot(3, 2).done, lot(4, 2).done, lot(4, 100).done]).toEqual([false, true, true]);
    expect([...lot(4, 100).procs]).toEqual(atOnce.slice(4));
  });

  it('keeps nothing of the environment that was not asked for', () => {
    expect(submit(SWEEP, here).digest()).not.toContain('SECRET');
  });

  it('is small for a long count', () => {
    const digest = late('arguments = $(Process)\nmax_materialize = 1000\nqueue 1000000').digest();
    expect(digest.length).toBeLessThan(20_000);
    const { procs, done } = materialize(digest, { cluster: 1, fromProc: 999_999, count: 1000 });
    expect([...procs].map(({ attrs }) => attrs['Args'])).toEqual(['"999999"']);
    expect(done).toBe(true);
  });

  it('does not look at files any more', () => {
    const inputs = world({ 'in.0': 'x', 'in.1': 'y' });
    const text = 'executable = job.sh\ntransfer_input_files = in.$(Process)\nmax_materialize = 1\nqueue 2';
    const digest = submit(text, { world: inputs }).digest();
    const [, second] = materialize(digest, { cluster: 1, fromProc: 0, count: 2 }).procs;
    expect(second?.attrs).toEqual({ ProcId: '1', TransferInput: '"in.1"' });
  });

  it('has one queue statement, the last line', () => {
    const error = refusal('max_materialize = 2\nqueue 5\n\narguments = 2');
    expect(error.message).toBe('on Line 5 of job.sub: Extra data found after queue statement');
    expect(refusal('max_materialize = abc\nqueue').message).toContain('max_materialize=abc is invalid');
  });

  it('refuses what another version stored', () => {
    const digest = JSON.stringify({ ...JSON.parse(submit(SWEEP, here).digest()), version: 99 });
    expect(() => materialize(digest, { cluster: 1, fromProc: 0, count: 1 })).toThrow(GryphusError);
  });

  it('stops at a job that a macro is wrong for', () => {
    const cluster = submit('executable = job.sh\narguments = $INT(x)\nmax_idle = 1\nqueue x in (1 2 three 4)');
    const made: number[] = [];
    const read = () => {
      for (const { proc } of materialize(cluster.digest(), { cluster: 5, fromProc: 1, count: 3 }).procs)
        made.push(proc);
    };
    expect(read).toThrow('on Line 2 of job.sub: $INT() macro: three does not evaluate to an integer!');
    expect(made).toEqual([1]);
  });
});
