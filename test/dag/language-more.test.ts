import { describe, expect, it } from 'vitest';
import { FLAG, nameOf, directoryOf, descriptionOf } from '../../src/dag/language/graph.ts';
import { type LoadedDag, loadDag, type LoadOptions } from '../../src/dag/language/load.ts';
import { formatProblem } from '../../src/dag/language/problem.ts';
import { subdagCycles } from '../../src/dag/subdag-cycles.ts';

/** What DAGMan's source prints and no recorded DAG shows. */
function load(files: Readonly<Record<string, string>>, options: LoadOptions = {}, dags = ['x.dag']): LoadedDag {
  const read = (path: string) => (Object.hasOwn(files, path) ? files[path] : undefined);
  return loadDag(dags, { read, absolute: (path) => `/d/${path}` }, options);
}

function order({ dag }: LoadedDag): string {
  return [...dag.order].map((node) => nameOf(dag, node)).join(' ');
}

function said({ problems }: LoadedDag): readonly string[] {
  return problems.map((problem) => `${problem.severity} ${formatProblem(problem)}`);
}

describe('the order of nodes', () => {
  const INNER = 'JOB I i.sub\n';

  it("of several files: each file's own nodes, then those of its splices", () => {
    const files = { 'x.dag': 'SPLICE S s.dag\nJOB A a.sub\n', 'y.dag': 'JOB B b.sub\n', 's.dag': INNER };
    expect(order(load(files, {}, ['x.dag', 'y.dag']))).toBe('0.A 0.S+0.I 1.B');
  });

  it('with files included: what was spliced before stands before what comes after', () => {
    const files = {
      'x.dag': 'SPLICE S s.dag\nJOB A a.sub\nINCLUDE y.dag\nINCLUDE z.dag\nPARENT A CHILD S\n',
      'y.dag': 'JOB B b.sub\n',
      'z.dag': 'JOB C c.sub\nSPLICE R s.dag\n',
      's.dag': INNER,
    };
    const loaded = load(files);
    expect(said(loaded)).toEqual([]);
    expect(order(loaded)).toBe('A B S+I C R+I');
    expect(loaded.dag.edges.count).toBe(1);
  });
});

describe('-usedagdir', () => {
  it('runs the nodes of a splice and of an included file in the directories of their files', () => {
    const files = {
      'd/x.dag': 'JOB A a.sub\nSPLICE S e/s.dag\nINCLUDE f/i.dag\n',
      'd/e/s.dag': 'JOB B b.sub\n',
      'd/f/i.dag': 'JOB C c.sub\n',
    };
    const { dag, problems } = load(files, { useDagDir: true }, ['d/x.dag']);
    expect(problems).toEqual([]);
    expect([...dag.order].map((node) => `${nameOf(dag, node)} ${directoryOf(dag, node)}`)).toEqual([
      'A d',
      'C d/f',
      'S+B d/e',
    ]);
  });
});

describe('priorities', () => {
  const TEXT = 'JOB A a.sub\nSERVICE V v.sub\nPRIORITY A 2\nCONFIG c\n';
  const files = { 'x.dag': TEXT, c: 'DAGMAN_DEFAULT_PRIORITY = 5\n' };

  it.each([
    ['the option wins over the setting', { priority: 10 }, [12, 0]],
    ['the setting counts without it', {}, [7, 0]],
    ['0 is no option', { priority: 0 }, [7, 0]],
  ])('%s; service nodes have none', (_case, options, wanted) => {
    expect([...load(files, options).dag.priority]).toEqual(wanted);
  });
});

describe('files that name each other', () => {
  const problemsOf = (files: Readonly<Record<string, string>>) => {
    const source = { read: (path: string) => files[path], absolute: (path: string) => path };
    const loaded = loadDag(['x.dag'], source);
    return [...loaded.problems, ...subdagCycles(loaded.dag, ['x.dag'], source)].map(formatProblem);
  };

  it('too deep, or too many times, are one error and not the end of memory', () => {
    for (const word of ['SPLICE S', 'INCLUDE']) {
      const chain = Array.from({ length: 3000 }, (_, i) => [`${i}.dag`, `${word} ${i + 1}.dag\n`]);
      const problems = problemsOf({
        'x.dag': `${word} 0.dag\n`,
        ...Object.fromEntries(chain),
        '3000.dag': 'JOB A a\n',
      });
      expect(problems).toEqual([
        expect.stringMatching(/^199\.dag:1 .*Splices and included files are nested more than 200 deep$/),
      ]);
    }
    const doubling = Array.from({ length: 40 }, (_, i) => [
      `${i}.dag`,
      `SPLICE S ${i + 1}.dag\nSPLICE T ${i + 1}.dag\n`,
    ]);
    expect(problemsOf({ 'x.dag': 'SPLICE S 0.dag\n', ...Object.fromEntries(doubling), '40.dag': '' })).toEqual([
      expect.stringContaining('The DAG has more than 200000 splices and included files'),
    ]);
  }, 60_000);

  it('VARS of many megabytes, or of many names, take a time that grows with them', () => {
    const pairs = Array.from({ length: 200_000 }, (_, i) => `v${i}="${i}"`).join(' ');
    const text = `JOB A a\nVARS A x="${'y'.repeat(20_000_000)}"\nVARS A ${pairs}\n`;
    const began = process.cpuUsage();
    expect(problemsOf({ 'x.dag': text })).toEqual([]);
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 1e6).toBeLessThan(10);
  }, 60_000);

  it('a sub-DAG that is a DAG above it is an error; one that is used twice is not', () => {
    expect(problemsOf({ 'x.dag': 'JOB A a\nSUBDAG EXTERNAL B x.dag\n' })).toEqual([
      'x.dag:2 Failed to parse SUBDAG command: The sub-DAG of node B is this DAG itself: x.dag',
    ]);
    const deep = { 'y.dag': 'SPLICE S z.dag\n', 'z.dag': 'SUBDAG EXTERNAL Q x.dag\n' };
    expect(problemsOf({ ...deep, 'x.dag': 'SUBDAG EXTERNAL B y.dag\n' })).toEqual([
      'x.dag:1 Failed to parse SUBDAG command: The sub-DAG of node B contains itself: y.dag -> x.dag',
    ]);
    expect(problemsOf({ 'x.dag': 'SUBDAG EXTERNAL A y.dag\nSUBDAG EXTERNAL B y.dag\n', 'y.dag': 'JOB A a\n' })).toEqual(
      [],
    );
  });
});

describe('places', () => {
  it('of a limit that is none, and of settings that are not there, are the lines that say so', () => {
    const text = 'JOB A a\nCATEGORY A c\nCONFIG nosuch.cfg\nMAXJOBS c 0\nMAXJOBS d 1\n';
    const { problems } = loadDag(['x.dag'], {
      read: (path) => (path === 'x.dag' ? text : undefined),
      absolute: (p) => p,
    });
    expect(problems.map(({ file, line }) => `${file}:${line}`)).toEqual(['x.dag:3', 'x.dag:4', 'x.dag:5']);
    const gone = loadDag(['gone.dag'], { read: () => undefined, absolute: (path) => path }).problems.map(formatProblem);
    expect(gone).toEqual(['gone.dag Failed to open DAG gone.dag: Provided file path does not exist']);
  });
});

describe('the commands of the language', () => {
  it.each(
    `JOB FINAL PROVISIONER SERVICE SUBDAG SPLICE INCLUDE SUBMIT-DESCRIPTION CATEGORY PARENT SCRIPT RETRY ABORT-DAG-ON VARS
    PRIORITY PRE_SKIP DONE MAXJOBS CONFIG DOT NODE_STATUS_FILE JOBSTATE_LOG SAVE_POINT_FILE SET_JOB_ATTR ENV REJECT CONNECT
    PIN_IN PIN_OUT TOLERANCE`.split(/\s+/),
  )('%s is known; a word like it is not, and which one is said', (word) => {
    const [known, odd] = [word, `${word}X`].map((first) => said(load({ 'x.dag': `JOB A a\n${first}\n` })));
    expect(known?.join()).not.toContain('is not a valid DAG command');
    expect(odd).toEqual([`error x.dag:2 '${word.replaceAll('-', '_')}X' is not a valid DAG command`]);
  });
});

describe('single commands', () => {
  it('FINAL may be a DAG by the name of its submit file; JOB may not', () => {
    const { dag, problems } = load({ 'x.dag': 'JOB A a.sub\nFINAL F in.dag.condor.sub\n' });
    expect(problems).toEqual([]);
    const final = dag.final ?? -1;
    expect([descriptionOf(dag, final), (dag.flags[final] ?? 0) & FLAG.subdag]).toEqual([
      { is: 'dag', file: 'in.dag' },
      FLAG.subdag,
    ]);
    expect(said(load({ 'x.dag': 'JOB A in.dag.condor.sub\n' }))[0]).toContain('prohibited');
  });

  it('DONE of a FINAL node is an error, and with DAGMAN_USE_STRICT = 0 a warning', () => {
    const files = { 'x.dag': 'FINAL F f.sub\nDONE F\n' };
    expect(said(load(files))[0]).toMatch(/^error x\.dag:2 .*DONE/);
    expect(said(load(files, { settings: { DAGMAN_USE_STRICT: 0 } }))[0]).toMatch(/^warning x\.dag:2/);
  });

  it('of two VARS of a line that differ by case alone, the last by name counts', () => {
    const { dag } = load({ 'x.dag': 'JOB A a.sub\nVARS A x="1" X="2" x="3"\n' });
    expect(dag.vars.get(0)?.map((v) => `${v.name}=${v.value}`)).toEqual(['X=2', 'x=3']);
  });

  it('CONFIG, ENV and SET_JOB_ATTR have no effect in splices and included files, and that is said', () => {
    const files = {
      'x.dag': 'JOB A a.sub\nSPLICE S s.dag\nINCLUDE i.dag\n',
      's.dag': 'JOB B b.sub\nCONFIG c\n',
      'i.dag': '# so\nSET-JOB-ATTR a = 1\nENV GET X\n',
    };
    const loaded = load(files);
    expect(said(loaded)).toEqual([
      'warning s.dag:2 CONFIG has no effect in a splice or an included file',
      'warning i.dag:2 SET_JOB_ATTR has no effect in a splice or an included file',
      'warning i.dag:3 ENV has no effect in a splice or an included file',
    ]);
    expect(loaded.attributes).toEqual([]);
  });

  it.each([
    ['ENV SET A=1;B=two words;C=$x', { A: '1', B: 'two words', C: '$x' }],
    ['ENV SET "A=1 B=\'two words\' C=""q"""', { A: '1', B: 'two words', C: '"q"' }],
  ])('%s', (line, wanted) => {
    const { environment, problems } = load({ 'x.dag': `JOB A a.sub\n${line}\nENV GET X, Y Z\n` });
    expect(problems).toEqual([]);
    expect(Object.fromEntries(environment.set)).toEqual(wanted);
    expect(environment.get).toEqual(['X', 'Y', 'Z']);
  });

  it('ENV SET without a value is refused with its line', () => {
    expect(said(load({ 'x.dag': 'JOB A a.sub\nENV SET A\n' }))[0]).toContain('x.dag:2 Failed to parse ENV command');
  });
});
