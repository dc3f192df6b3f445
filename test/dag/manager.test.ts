import { describe, expect, it } from 'vitest';
import type { DagRun } from '../../src/dag/manager/prepare.ts';
import { type DagEnd, runDag } from '../../src/dag/manager/run.ts';
import { nodeCluster } from '../../src/dag/node-cluster.ts';
import type { NodeSubmit } from '../../src/dag/manager/world.ts';
import { memoryFiles, MemoryJournal, type SimBehaviour, SimWorld } from './support/sim-world.ts';

const RUN: DagRun = { files: ['x.dag'], dagmanId: 9, version: '0.0.0' };

/** Each job starts at once and ends this many simulated seconds later. */
function jobs(seconds: number, code = 0): SimBehaviour {
  return {
    submit: () => ({ procs: [{ startAfter: 0, run: { duration: seconds * 1000, end: { code } } }] }),
    script: () => ({ duration: 100, end: { code: 0 } }),
  };
}

interface Played {
  readonly world: SimWorld;
  readonly files: ReturnType<typeof memoryFiles>;
  readonly requests: NodeSubmit[];
  /** Files that were written in one piece. */
  readonly writes: readonly { readonly path: string; readonly text: string }[];
  readonly run: (run?: Partial<DagRun>) => Promise<DagEnd>;
}

function stage(files: Readonly<Record<string, string>>, behaviour: SimBehaviour): Played {
  const inMemory = memoryFiles(files);
  const writes: { path: string; text: string }[] = [];
  const write = (path: string, text: string): void => {
    writes.push({ path, text });
    inMemory.write(path, text);
  };
  const requests: NodeSubmit[] = [];
  const submit = (request: NodeSubmit, at: number) => {
    requests.push(request);
    return behaviour.submit(request, at);
  };
  const world = new SimWorld({ ...behaviour, submit }, { ...inMemory, write }, new MemoryJournal());
  return { world, files: inMemory, writes, requests, run: (run = {}) => runDag({ ...RUN, ...run }, world) };
}

function macro({ before, after }: NodeSubmit, name: string): string | undefined {
  return [...before, ...after].find(([known]) => known.toLowerCase() === name.toLowerCase())?.[1];
}

describe('a node status file with ALWAYS-UPDATE', () => {
  it.each([
    ['ALWAYS-UPDATE', 6],
    ['', 0],
  ])('while nothing happens (%s)', async (option, least) => {
    const { run, writes } = stage({ 'x.dag': `JOB A a\nNODE_STATUS_FILE st 5 ${option}\n` }, jobs(40));
    await run();
    const waiting = writes.filter(({ path, text }) => path === 'st' && text.includes('NodesQueued = 1'));
    const times = new Set(waiting.map(({ text }) => /Timestamp = (\d+)/.exec(text)?.[1]));
    expect(times.size).toBeGreaterThanOrEqual(least);
    if (least === 0) expect(times.size).toBeLessThan(4);
  });
});

describe('a manager that is asked to stop', () => {
  it('says so in its files, and continues where it was', async () => {
    const text = 'JOB A a\nJOB B b\nPARENT A CHILD B\nNODE_STATUS_FILE st 0\nJOBSTATE_LOG js\n';
    const { world, files, run } = stage({ 'x.dag': text }, jobs(10));
    world.at(3, { is: 'stop' });
    expect(await run()).toEqual({ is: 'stopped' });
    expect(files.all.get('st')).toContain('DagStatus = 3; /* "STATUS_SUBMITTED (held)" */');
    expect(files.all.get('js')).toMatch(/INTERNAL \*\*\* DAGMAN_FINISHED 3 \*\*\*\n$/);
    expect(await run()).toMatchObject({ is: 'ended', exitCode: 0 });
    const internal = (files.all.get('js') ?? '').match(/\*\*\* .* \*\*\*/g);
    expect(internal).toEqual([
      '*** DAGMAN_STARTED 9.0 ***',
      '*** DAGMAN_FINISHED 3 ***',
      '*** DAGMAN_STARTED 9.0 ***',
      '*** RECOVERY_STARTED ***',
      '*** RECOVERY_FINISHED ***',
      '*** DAGMAN_FINISHED 0 ***',
    ]);
    expect(world.submits.map((s) => s.node)).toEqual(['A', 'B']);
  });
});

describe('what node jobs carry', () => {
  it('DAGMAN_NODE_RECORD_INFO, DAGMAN_RECORD_MACHINE_ATTRS and DAGMAN_INHERIT_ATTRS', async () => {
    const config = [
      'DAGMAN_NODE_RECORD_INFO = Retry',
      'DAGMAN_RECORD_MACHINE_ATTRS = Machine, Cpus',
      'DAGMAN_INHERIT_ATTRS = Project Missing',
      'DAGMAN_INHERIT_ATTRS_PREFIX = Up',
    ];
    const files = { 'x.dag': 'JOB A a\nRETRY A 1\nCONFIG c\n', c: `${config.join('\n')}\n` };
    const { run, requests } = stage(files, jobs(1, 1));
    const own: Readonly<Record<string, string>> = { Project: '"p"', UpProject: '"q"', AcctGroup: '"g"' };
    await run({ ownAttribute: (name) => own[name] });
    const [first, second] = requests;
    if (first === undefined || second === undefined) throw new Error('A was not submitted twice');
    expect([macro(first, 'My.DAGManNodeRetry'), macro(second, 'My.DAGManNodeRetry')]).toEqual([undefined, '1']);
    expect(macro(first, 'job_machine_attrs')).toBe('Machine, Cpus');
    expect(macro(first, 'job_ad_information_attrs')).toBe('MachineAttrMachine0,MachineAttrCpus0,DAGNodeName');
    expect([macro(first, 'My.UpProject'), macro(first, 'My.UpMissing')]).toEqual(['"p"', undefined]);
    expect(macro(first, 'DAGManJobId')).toBe('9');
    expect([macro(first, 'batch_name'), macro(first, 'batch_id')]).toEqual(['x.dag+9', '9.0']);
    const inner = stage(files, jobs(1));
    await inner.run({ ownAttribute: (name) => own[name], parentDagmanId: 3, batchId: '3.0', batchName: ' ' });
    const [only] = inner.requests;
    if (only === undefined) throw new Error('A was not submitted');
    expect(macro(only, 'My.UpProject')).toBe('"q"');
    expect([macro(only, 'batch_name'), macro(only, 'batch_id')]).toEqual([undefined, '3.0']);
    expect([macro(only, 'accounting_group'), macro(only, 'accounting_group_user')]).toEqual(['g', undefined]);
  });
});

describe('a description', () => {
  it('may use the macros that DAGMan gives, DAGManJobId among them', async () => {
    const text = 'executable = /bin/echo\narguments = $(JOB) $(RETRY) $(DAG_STATUS) $(FAILED_COUNT) $(DAGManJobId)';
    const dag = `JOB P {\n${text}\n}\nJOB A {\n${text} $(DAG_PARENT_NAMES)\npriority = $(DAGManJobId)\n}\nPARENT P CHILD A\n`;
    const { run, requests } = stage({ 'x.dag': dag }, jobs(1));
    await run();
    const ads = requests.map((request) => {
      const made = nodeCluster(request, { root: '/', owner: 'me', subdag: () => '' });
      if ('failed' in made) throw new Error(made.failed);
      return made.cluster.clusterAd;
    });
    expect(ads.map((ad) => ad['Args'] ?? ad['Arguments'])).toEqual(['"P 0 0 0 9"', '"A 0 0 0 9 P"']);
    expect(ads[1]?.['JobPrio']).toBe('9');
  });
});

describe('the ad of the manager', () => {
  it('says how the DAG stands: as it begins, now and then, and as it ends', async () => {
    const files = {
      'x.dag': 'JOB A a\nJOB B b\nPARENT A CHILD B\nCONFIG c\n',
      c: 'DAGMAN_QUEUE_UPDATE_INTERVAL = 5\n',
    };
    const { run, world } = stage(files, jobs(20));
    await run({ limits: { maxJobs: 3 } });
    const seen = world.shown.map((ad) => [ad['DAG_NodesDone'], ad['DAG_NodesQueued'], ad['DAG_JobsRunning']].join(' '));
    expect(seen[0]).toBe('0 1 0');
    expect(seen).toContain('0 1 1');
    expect(seen).toContain('1 1 1');
    expect(seen.at(-1)).toBe('2 0 0');
    expect(seen.length).toBeLessThan(12);
    expect(world.shown.at(-1)).toMatchObject({ DAG_Status: '0', DAG_NodesTotal: '2', DAGMan_MaxJobs: '3' });
  });
});

describe('options of a run', () => {
  it('-AlwaysRunPost runs POST after a failed PRE, -DontAlwaysRunPost does not, whatever the settings say', async () => {
    const files = {
      'x.dag': 'JOB A a\nSCRIPT PRE A pre\nSCRIPT POST A post\nCONFIG c\n',
      c: 'DAGMAN_ALWAYS_RUN_POST = True\n',
    };
    const behaviour: SimBehaviour = {
      ...jobs(1),
      script: ({ type }) => ({ duration: 1, end: { code: type === 'PRE' ? 3 : 0 } }),
    };
    const types = async (run: Partial<DagRun>): Promise<string> => {
      const played = stage(files, behaviour);
      await played.run(run);
      return played.world.scriptsRun.map(({ type }) => type).join(' ');
    };
    expect(await types({})).toBe('PRE POST');
    expect(await types({ alwaysRunPost: false })).toBe('PRE');
    expect(await types({ alwaysRunPost: true })).toBe('PRE POST');
  });

  it('-outfile_dir is where the log is written', async () => {
    const { files, run } = stage({ 'd/x.dag': 'JOB A a\n' }, jobs(1));
    await run({ files: ['d/x.dag'], outfileDir: 'logs' });
    expect([files.all.has('logs/x.dag.dagman.out'), files.all.has('d/x.dag.dagman.out')]).toEqual([true, false]);
  });

  it('a submit that failed is said in the words that tools look for', async () => {
    const behaviour: SimBehaviour = { ...jobs(1), submit: () => ({ failed: 'no\nsuch file', again: false }) };
    const { files, run } = stage({ 'x.dag': 'JOB A a\n' }, behaviour);
    await run();
    expect(files.all.get('x.dag.dagman.out')).toMatch(
      /Event: ULOG_SUBMIT_FAILURE for HTCondor Node A \(-1\.-1\.-1\) \{.*\} no such file\n/,
    );
  });

  it('-RescueFile is read, and newer rescue files are moved away', async () => {
    const dag = 'JOB A a\nJOB B b\n';
    const { files, run, requests } = stage({ 'x.dag': dag, mine: 'DONE A\n', 'x.dag.rescue001': 'DONE B\n' }, jobs(1));
    await run({ rescueFile: 'mine' });
    expect(requests.map(({ node }) => node)).toEqual(['B']);
    expect(files.all.has('x.dag.rescue001.old')).toBe(true);
    expect(files.all.get('x.dag.dagman.out')).toContain('Rescue DAG file specified; running mine in combination');
  });
});

describe('the metrics', () => {
  it.each([
    ['2', 'nodes', 2],
    ['1', 'jobs', 1],
  ])('of version %s count service nodes, or do not, as there', async (version, word, total) => {
    const text = `JOB A a\nSERVICE S s\nCONFIG c\n`;
    const { run, files } = stage({ 'x.dag': text, c: `DAGMAN_METRICS_FILE_VERSION = ${version}\n` }, jobs(10));
    await run();
    const metrics = JSON.parse(files.all.get('x.dag.metrics') ?? '') as Record<string, number>;
    expect([metrics[word], metrics[`total_${word}`], metrics[`total_${word}_run`]]).toEqual([1, total, total]);
  });
});

describe('a second line', () => {
  it('of DOT counts, of NODE_STATUS_FILE and JOBSTATE_LOG the first does', async () => {
    const text =
      'JOB A a\nDOT a.dot\nDOT b.dot\nNODE_STATUS_FILE a.st\nNODE_STATUS_FILE b.st\nJOBSTATE_LOG a.js\nJOBSTATE_LOG b.js\n';
    const { run, files } = stage({ 'x.dag': text }, jobs(1));
    await run();
    expect([...files.all.keys()].filter((name) => /^[ab]\./.test(name)).sort()).toEqual(['a.js', 'a.st', 'b.dot.0']);
  });
});
