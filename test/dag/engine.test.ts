import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { progressBar } from '../../src/commands/show/dag.ts';
import { Engine } from '../../src/dag/engine/engine.ts';
import type { DagCommand, DagEvent } from '../../src/dag/engine/messages.ts';
import { ReadyQueue } from '../../src/dag/engine/ready-queue.ts';
import { STATUS } from '../../src/dag/engine/status.ts';
import { nameOf } from '../../src/dag/language/graph.ts';
import { loadDag } from '../../src/dag/language/load.ts';
import { criticalPath, progressOf } from '../../src/dag/progress.ts';
import { applyRescue, rescueText } from '../../src/dag/rescue.ts';
import type { DagSettings } from '../../src/dag/language/settings.ts';

const LIMITS = { maxJobs: 0, maxIdle: 0, maxPre: 20, maxPost: 20, maxHold: 20 };

/** An engine, and a queue of jobs that do nothing by themselves. */
class Bench {
  readonly engine: Engine;
  readonly commands: DagCommand[] = [];
  private cluster = 10;
  private now = 1000;
  readonly clusters = new Map<string, number>();

  constructor(text: string, settings: Partial<DagSettings> = {}, limits = LIMITS) {
    const loaded = loadDag(['x.dag'], { read: () => text, absolute: (path) => path }, { settings });
    const wrong = loaded.problems.find((p) => p.severity === 'error');
    if (wrong !== undefined) throw new Error(wrong.message);
    this.engine = new Engine(loaded.dag, { settings: loaded.settings, limits, dagmanId: 5 });
    this.take(this.engine.start(this.now));
  }

  step(...events: DagEvent[]): void {
    this.now += 1000;
    this.take(this.engine.step(events, this.now));
  }

  /** Answers the submit of a node. */
  submit(name: string, procs = 1): void {
    const cluster = ++this.cluster;
    this.clusters.set(name, cluster);
    this.step({ is: 'submitted', node: this.node(name), cluster, procs });
  }

  end(name: string, code: number, proc = 0): void {
    this.step(this.job(name, { what: 'terminated', end: { code } }, proc));
  }

  job(name: string, change: Extract<DagEvent, { is: 'job' }>['change'], proc = 0): DagEvent {
    return { is: 'job', cluster: this.clusters.get(name) ?? 0, proc, change };
  }

  script(name: string, type: 'PRE' | 'POST' | 'HOLD', code: number): void {
    this.step({ is: 'script-ended', node: this.node(name), type, end: { code } });
  }

  node(name: string): number {
    return this.engine.core.dag.byName.get(name) ?? -1;
  }

  /** The commands of one kind since the last call, as the `node` or its text. */
  taken(kind: 'submit' | 'script' | 'remove-node' | 'remove-all' | 'finish' | 'wake'): readonly string[] {
    const found = this.commands.filter((c) => c.do === kind);
    this.commands.splice(0, this.commands.length, ...this.commands.filter((c) => c.do !== kind));
    return found.map((c) => {
      if (c.do === 'script') return `${c.type} ${c.argv.join(' ')}`;
      if ('node' in c) return nameOf(this.engine.core.dag, c.node);
      return c.do === 'finish' ? String(c.code) : c.do === 'wake' ? String(c.at) : c.do;
    });
  }

  /** The ends of jobs that the DAG itself writes to the node jobs' log. */
  logged(): readonly string[] {
    return this.commands.flatMap((c) =>
      c.do === 'log' && c.event.type === 'aborted' ? [`aborted ${c.event.cluster}.${c.event.proc}`] : [],
    );
  }

  status(name: string): number {
    return this.engine.core.status[this.node(name)] ?? -1;
  }

  private take(commands: readonly DagCommand[]): void {
    this.commands.push(...commands);
  }
}

describe('the queue of ready nodes', () => {
  it('gives the highest priority first, then what was prepended last, then what was appended first', () => {
    const moves = fc.array(fc.tuple(fc.constantFrom('append', 'prepend', 'pop'), fc.nat(2)), { maxLength: 60 });
    fc.assert(
      fc.property(moves, (list) => {
        const priority = Int32Array.from(list, ([, p]) => p);
        const queue = new ReadyQueue(priority);
        const naive: { node: number; rank: number }[] = [];
        const popped: [ours: number | undefined, naive: number | undefined][] = [];
        list.forEach(([move], node) => {
          if (move === 'append') {
            queue.append(node);
            naive.push({ node, rank: -1 - node });
          } else if (move === 'prepend') {
            queue.prepend(node);
            naive.push({ node, rank: 1 + node });
          } else {
            naive.sort((a, b) => (priority[b.node] ?? 0) - (priority[a.node] ?? 0) || b.rank - a.rank);
            popped.push([queue.pop(), naive.shift()?.node]);
          }
        });
        expect(popped.map(([ours]) => ours)).toEqual(popped.map(([, node]) => node));
        expect(queue.size).toBe(naive.length);
      }),
    );
  });
});

describe('throttles', () => {
  it('let no more than maxjobs nodes into the queue', () => {
    const bench = new Bench('JOB A a\nJOB B a\nJOB C a\nPRIORITY C 5\n', {}, { ...LIMITS, maxJobs: 1 });
    expect(bench.taken('submit')).toEqual(['C']);
    bench.submit('C');
    expect(bench.taken('submit')).toEqual([]);
    bench.end('C', 0);
    expect(bench.taken('submit')).toEqual(['A']);
  });

  it('count idle jobs, also those that are only asked for', () => {
    const bench = new Bench('JOB A a\nJOB B a\nJOB C a\n', {}, { ...LIMITS, maxIdle: 2 });
    expect(bench.taken('submit')).toEqual(['A', 'B']);
    bench.submit('A');
    bench.submit('B');
    expect(bench.taken('submit')).toEqual([]);
    bench.step(bench.job('A', { what: 'execute' }));
    expect(bench.taken('submit')).toEqual(['C']);
  });

  it('keep a category, and can be changed while the DAG runs', () => {
    const bench = new Bench(
      'JOB A a\nJOB B a\nCATEGORY ALL_NODES c\nMAXJOBS c 1\nJOB C a\n',
      {},
      { ...LIMITS, maxJobs: 1 },
    );
    expect(bench.taken('submit')).toEqual(['A']);
    bench.step({ is: 'throttle', limits: { maxJobs: 0 } });
    expect(bench.taken('submit')).toEqual([]);
    bench.submit('A');
    bench.end('A', 0);
    expect(bench.taken('submit')).toEqual(['B']);
  });
});

describe('scripts', () => {
  it('wait for a place among maxpre', () => {
    const bench = new Bench('JOB A a\nJOB B a\nSCRIPT PRE ALL_NODES p $JOB\n', {}, { ...LIMITS, maxPre: 1 });
    expect(bench.taken('script')).toEqual(['PRE p A']);
    bench.script('A', 'PRE', 0);
    expect(bench.taken('script')).toEqual(['PRE p B']);
  });

  it('run again later when they DEFER, without using up a retry', () => {
    const bench = new Bench('JOB A a\nSCRIPT DEFER 4 60 PRE A p $RETRY\nRETRY A 1\n');
    bench.taken('script');
    bench.script('A', 'PRE', 4);
    expect(bench.taken('wake')).toEqual(['62000']);
    for (let i = 0; i < 59; i++) bench.step({ is: 'tick' });
    expect(bench.taken('script')).toEqual([]);
    bench.step({ is: 'tick' });
    expect(bench.taken('script')).toEqual(['PRE p 0']);
  });

  it('get the results of the jobs', () => {
    const text =
      'JOB A a\nSCRIPT POST A q $JOBID $RETURN $EXIT_CODES $EXIT_CODE_COUNTS $EXIT_CODE_LIST $JOB_COUNT $SUCCESS x$JOB "$JOB"\n';
    const bench = new Bench(text, { DAGMAN_REMOVE_JOB_LIST_ON_FAILURE: false });
    bench.submit('A', 4);
    for (const [proc, code] of [3, 0, 5, 0].entries()) bench.end('A', code, proc);
    expect(bench.taken('script')).toEqual(['POST q 11.3 3 0,3,5 0:2,3:1,5:1 3,0,5,0 4 False x$JOB "$JOB"']);
  });

  it('with a macro that means nothing end the DAG, unless it is not to be strict', () => {
    const strict = new Bench('JOB A a\nSCRIPT PRE A p $HOME\n');
    expect([strict.taken('script'), strict.taken('finish')]).toEqual([[], ['1']]);
    const lax = new Bench('JOB A a\nSCRIPT PRE A p $HOME $RETURN\n', { DAGMAN_USE_STRICT: 0 });
    expect(lax.taken('script')).toEqual(['PRE p $HOME $RETURN']);
    const said = lax.commands.flatMap((c) => (c.do === 'say' && c.text.startsWith('Warning') ? [c.text] : []));
    expect(said).toEqual([
      'Warning: unrecognized macro $HOME in node A PRE script arguments',
      'Warning: $RETURN macro should not be used as a PRE script argument!',
    ]);
  });

  it('for HOLD run at each hold and change nothing', () => {
    const bench = new Bench('JOB A a\nSCRIPT HOLD A h $JOB\n');
    bench.submit('A');
    bench.step(bench.job('A', { what: 'held', reason: 'because' }));
    expect(bench.taken('script')).toEqual(['HOLD h A']);
    bench.script('A', 'HOLD', 1);
    bench.step(bench.job('A', { what: 'released' }));
    bench.end('A', 0);
    expect(bench.taken('finish')).toEqual(['0']);
  });
});

describe('RETRY … UNLESS-EXIT', () => {
  it.each([
    [{ code: 7 }, 'POST script failed with status 7'],
    [{ signal: 9 }, 'POST script died on signal 9'],
  ])('that a POST script stops says what the script returned: %o', (end, details) => {
    const bench = new Bench(`JOB A a\nSCRIPT POST A q\nRETRY A 3 UNLESS-EXIT ${'code' in end ? 7 : -9}\n`);
    bench.submit('A');
    bench.end('A', 1);
    bench.step({ is: 'script-ended', node: bench.node('A'), type: 'POST', end });
    expect([bench.status('A'), bench.engine.core.errors.get(0)]).toEqual([STATUS.error, details]);
  });
});

describe('the jobs of one node', () => {
  it('are removed when one fails, and the node waits for the last of them', () => {
    const bench = new Bench('JOB A a\nJOB B a\nPARENT A CHILD B\n');
    bench.submit('A', 3);
    bench.end('A', 1, 1);
    expect(bench.taken('remove-node')).toEqual(['A']);
    expect(bench.status('B')).toBe(STATUS.ready);
    bench.step(bench.job('A', { what: 'aborted' }, 0), bench.job('A', { what: 'aborted' }, 2));
    expect([bench.status('B'), bench.taken('finish')]).toEqual([STATUS.futile, ['1']]);
  });

  it.each([
    ['TOLERANCE A 1', 0],
    ['TOLERANCE A 40% WAIT', 0],
    ['TOLERANCE A 0 FAIL-FAST', 1],
  ])('%s', (line, exit) => {
    const bench = new Bench(`JOB A a\n${line}\n`);
    bench.submit('A', 3);
    for (const [proc, code] of [0, 7, 0].entries()) bench.end('A', code, proc);
    expect(bench.taken('finish')).toEqual([String(exit)]);
  });

  it('are removed when too many are held', () => {
    const bench = new Bench('JOB A a\n', { DAGMAN_MAX_JOB_HOLDS: 2 });
    bench.submit('A', 2);
    bench.step(bench.job('A', { what: 'held', reason: 'x' }, 0));
    expect(bench.taken('remove-node')).toEqual([]);
    bench.step(bench.job('A', { what: 'held', reason: 'x' }, 1));
    expect(bench.taken('remove-node')).toEqual(['A']);
  });

  it('say things twice, or of other clusters, without effect', () => {
    const bench = new Bench('JOB A a\n');
    bench.submit('A');
    bench.step({ is: 'job', cluster: 999, proc: 0, change: { what: 'terminated', end: { code: 0 } } });
    bench.step(bench.job('A', { what: 'execute' }), bench.job('A', { what: 'execute' }));
    expect(bench.engine.core.counts.idle).toBe(0);
    bench.end('A', 0);
    bench.end('A', 1);
    expect(bench.taken('finish')).toEqual(['0']);
  });
});

describe('a halt', () => {
  it('lets jobs and POST scripts end, starts nothing, and ends with a rescue file', () => {
    const bench = new Bench('JOB A a\nJOB B a\nPARENT A CHILD B\nSCRIPT POST A q\n');
    bench.submit('A');
    bench.taken('submit');
    bench.step({ is: 'halt' });
    bench.end('A', 0);
    expect(bench.taken('script')).toEqual(['POST q']);
    bench.script('A', 'POST', 0);
    expect([bench.taken('submit'), bench.taken('finish')]).toEqual([[], ['1']]);
    expect(bench.engine.core.dagStatus).toBe(6);
  });

  it('is undone by a resume', () => {
    const bench = new Bench('JOB A a\nJOB B a\nJOB C a\nPARENT A CHILD B\n');
    bench.submit('A');
    bench.submit('C');
    bench.taken('submit');
    bench.step({ is: 'halt' });
    bench.end('A', 0);
    expect(bench.taken('submit')).toEqual([]);
    bench.step({ is: 'resume' });
    expect(bench.taken('submit')).toEqual(['B']);
  });
});

describe('special nodes', () => {
  it('PROVISIONER: the others wait for its word', () => {
    const bench = new Bench('PROVISIONER P p\nJOB A a\n');
    expect(bench.taken('submit')).toEqual(['P']);
    bench.submit('P');
    bench.step({ is: 'provisioned' });
    expect(bench.taken('submit')).toEqual(['A']);
    bench.submit('A');
    bench.end('P', 0);
    bench.end('A', 0);
    expect(bench.taken('finish')).toEqual(['0']);
  });

  it('SERVICE: runs beside the DAG, and ends with it', () => {
    const bench = new Bench('SERVICE S s\nJOB A a\n');
    expect(bench.taken('submit')).toEqual(['S', 'A']);
    bench.submit('S');
    bench.submit('A');
    bench.end('A', 0);
    expect([bench.taken('remove-node'), bench.taken('finish')]).toEqual([['S'], ['0']]);
  });

  it('FINAL: is kept from the removal of all others', () => {
    const bench = new Bench('JOB A a\nJOB B a\nFINAL F f\nABORT-DAG-ON A 2\n');
    bench.submit('A');
    bench.submit('B');
    bench.taken('submit');
    bench.end('A', 2);
    expect([bench.taken('remove-all').length, bench.taken('submit')]).toEqual([1, ['F']]);
    bench.submit('F');
    bench.step(bench.job('B', { what: 'aborted' }));
    bench.end('F', 0);
    expect(bench.taken('finish')).toEqual(['0']);
  });

  it('over a weak dependency: a child needs its parent only to have run', () => {
    const bench = new Bench('JOB A a\nJOB B a\nJOB C a\nWEAK PARENT A CHILD B\nPARENT B CHILD C\n');
    bench.submit('A');
    bench.taken('submit');
    bench.end('A', 1);
    expect(bench.taken('submit')).toEqual(['B']);
  });
});

describe('settings', () => {
  it('DAGMAN_RETRY_SUBMIT_FIRST: a submit that failed goes before those that wait, or behind them', () => {
    const next = (settings: Partial<DagSettings>): readonly string[] => {
      const bench = new Bench('JOB A a\nJOB B a\nJOB C a\n', settings, { ...LIMITS, maxJobs: 1 });
      bench.step({ is: 'submit-failed', node: bench.node('A'), reason: 'x', again: true });
      bench.taken('submit');
      // A waits for a second while B has the only slot.
      bench.submit('B');
      bench.step({ is: 'tick' });
      bench.end('B', 0);
      return bench.taken('submit');
    };
    expect(next({})).toEqual(['A']);
    expect(next({ DAGMAN_RETRY_SUBMIT_FIRST: false })).toEqual(['C']);
  });

  it('DAGMAN_REMOVE_JOBS_AFTER_LIMIT_CHANGE: nodes beyond a new -maxjobs are taken back, at no cost of a retry', () => {
    const after = (remove: boolean): readonly unknown[] => {
      const bench = new Bench('JOB A a\nJOB B a\n', { DAGMAN_REMOVE_JOBS_AFTER_LIMIT_CHANGE: remove });
      for (const name of ['A', 'B']) bench.submit(name);
      bench.step({ is: 'throttle', limits: { maxJobs: 1 } });
      const removed = bench.taken('remove-node');
      if (removed.length === 0) return removed;
      bench.step(bench.job('B', { what: 'aborted' }));
      return [...removed, bench.status('B') === STATUS.ready];
    };
    expect(after(false)).toEqual([]);
    expect(after(true)).toEqual(['B', true]);
  });

  it('the POST script of a NOOP node gets the values of a node without a job', () => {
    const text = 'JOB A a NOOP\nSCRIPT POST A p $CLUSTERID $JOB_COUNT $EXIT_CODES $EXIT_CODE_COUNTS $EXIT_CODE_LIST\n';
    expect(new Bench(text).taken('script')).toEqual(['POST p 0 0 0 0:1 0']);
  });

  it('a removed job has no code in $EXIT_CODE_LIST, but its place', () => {
    const bench = new Bench('JOB A a\nSCRIPT POST A p $EXIT_CODE_LIST $JOB_ABORT_COUNT\nTOLERANCE A 9\n');
    bench.submit('A', 3);
    bench.end('A', 4, 0);
    bench.step(bench.job('A', { what: 'aborted' }, 1));
    bench.end('A', 0, 2);
    expect(bench.taken('script')).toEqual(['POST p 4,,0 1']);
  });
});

describe('a final node', () => {
  it.each([
    [0, '0'],
    [1, '1'],
  ])('decides with %i, also while jobs that were removed still leave the queue', (code, exit) => {
    const bench = new Bench('JOB A a\nFINAL F f\n');
    bench.submit('A');
    bench.step({ is: 'remove' });
    bench.submit('F');
    expect(bench.taken('finish')).toEqual([]);
    bench.end('F', code);
    expect(bench.taken('finish')).toEqual([exit]);
  });

  it('settles what was removed before it: failed, without its POST script, and nothing waits for it', () => {
    const text = 'JOB A a\nJOB B b\nJOB C c\nFINAL F f\nPARENT A CHILD B\nSCRIPT POST C q\nRETRY C 3\n';
    const bench = new Bench(text);
    bench.submit('A', 2);
    bench.submit('C');
    bench.step({ is: 'remove' });
    bench.submit('F');
    bench.step(bench.job('A', { what: 'aborted' }, 1));
    bench.taken('script');
    bench.end('F', 0);
    expect(['A', 'B', 'C'].map((name) => bench.status(name))).toEqual([STATUS.error, STATUS.futile, STATUS.error]);
    expect([bench.taken('script'), bench.taken('finish')]).toEqual([[], ['0']]);
    const { counts } = bench.engine.core;
    expect([counts.submitted, counts.jobsSubmitted - counts.jobsCompleted]).toEqual([0, 0]);
    const a = bench.clusters.get('A') ?? 0;
    expect(bench.logged()).toEqual([`aborted ${a}.0`, `aborted ${bench.clusters.get('C')}.0`]);
  });

  it('of several jobs has not ended while one of them is in the queue', () => {
    const bench = new Bench('JOB A a\nFINAL F f\n');
    bench.submit('A');
    bench.end('A', 0);
    bench.submit('F', 2);
    bench.end('F', 1, 0);
    expect([bench.taken('remove-node'), bench.taken('finish')]).toEqual([['F'], []]);
    bench.step(bench.job('F', { what: 'aborted' }, 1));
    expect(bench.taken('finish')).toEqual(['1']);
  });
});

describe("the node jobs' log, where a DAG ends before its jobs", () => {
  it.each([
    ['removed', (bench: Bench) => bench.step({ is: 'remove' })],
    ['aborted', (bench: Bench) => bench.end('A', 2)],
  ] as const)('%s: says that they are removed', (_how, end) => {
    const bench = new Bench('JOB A a\nJOB B b\nSERVICE S s\nABORT-DAG-ON A 2\n');
    for (const name of ['S', 'A', 'B']) bench.submit(name, name === 'B' ? 2 : 1);
    bench.end('B', 0, 0);
    end(bench);
    const ended = bench.engine.core.dagStatus === 3 ? [] : ['A'];
    const wanted = ['S.0', ...ended.map((name) => `${name}.0`), 'B.1'].map((job) => {
      const [name = '', proc] = job.split('.');
      return `aborted ${bench.clusters.get(name)}.${proc}`;
    });
    expect(bench.logged()).toEqual(wanted);
  });

  it('well: says so of its services', () => {
    const bench = new Bench('JOB A a\nSERVICE S s\n');
    for (const name of ['S', 'A']) bench.submit(name);
    bench.end('A', 0);
    expect(bench.logged()).toEqual([`aborted ${bench.clusters.get('S')}.0`]);
  });
});

describe('the cost of an event', () => {
  it('does not grow with the DAG', () => {
    const time = (nodes: number): number => {
      const text = Array.from(
        { length: nodes },
        (_, i) => `JOB N${i} a\n${i > 0 ? `PARENT N${i - 1} CHILD N${i}\n` : ''}`,
      );
      const bench = new Bench(text.join(''));
      const cpu = process.cpuUsage();
      for (let i = 0; i < 500; i++) {
        bench.submit(`N${i}`);
        bench.end(`N${i}`, 0);
        bench.commands.length = 0;
      }
      return process.cpuUsage(cpu).user;
    };
    time(1000);
    expect(time(100_000)).toBeLessThan(10 * Math.max(time(1000), 2000));
  });
});

describe('a rescue file', () => {
  it('read again, leaves what was not done', () => {
    const text = 'JOB A a\nJOB B b\nJOB C c\nPARENT A CHILD B C\nRETRY C 2\n';
    const bench = new Bench(text, { DAGMAN_RESET_RETRIES_UPON_RESCUE: false });
    bench.submit('A');
    bench.end('A', 0);
    for (const name of ['B', 'C']) bench.submit(name);
    bench.end('C', 1);
    const rescue = rescueText(bench.engine.core, 'x.dag', 0);
    expect(rescue).toContain('DONE A\n# 1 of 2 retries already performed; 1 remaining\nRETRY C 1\n');
    const again = loadDag(['x.dag'], { read: () => text, absolute: (path) => path });
    expect(applyRescue(again.dag, rescue, 'x.dag.rescue001')).toEqual([]);
    const engine = new Engine(again.dag, { settings: again.settings, limits: LIMITS, dagmanId: 6 });
    const submits = engine.start(0).flatMap((c) => (c.do === 'submit' ? [nameOf(again.dag, c.node)] : []));
    expect(submits).toEqual(['B', 'C']);
    expect(engine.core.retryMax[2]).toBe(1);
  });

  it('of another DAG is refused, with its line', () => {
    const { dag } = loadDag(['x.dag'], { read: () => 'JOB A a\n', absolute: (path) => path });
    expect(applyRescue(dag, '# so\nDONE A\nDONE GONE\n', 'r')).toMatchObject([
      { file: 'r', line: 3, severity: 'error' },
    ]);
  });
});

describe('progress', () => {
  it('names the longest chain that is left, and what it waits for', () => {
    const bench = new Bench('JOB A a\nJOB B a\nJOB C a\nJOB D a\nPARENT A CHILD B\nPARENT B CHILD C\n');
    bench.submit('A', 2);
    bench.step(bench.job('A', { what: 'held', reason: 'x' }, 1));
    expect(criticalPath(bench.engine.core)).toEqual({
      length: 3,
      nodes: [
        { node: 'A', status: 'STATUS_SUBMITTED' },
        { node: 'B', status: 'STATUS_READY' },
        { node: 'C', status: 'STATUS_READY' },
      ],
      waitsFor: `1 of 2 jobs of A (cluster ${bench.clusters.get('A')}) is held; release them.`,
    });
    expect(progressOf(bench.engine.core)).toMatchObject({ total: 4, queued: 2, unready: 2, fraction: 0 });
    expect(progressBar(0.5, 8)).toBe('[████░░░░] 50 %');
  });
});
