import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { childrenOf, type DagGraph, FLAG, nameOf, parentsOf } from '../../src/dag/language/graph.ts';
import type { NodeVar } from '../../src/dag/language/commands.ts';
import { EdgeList } from '../../src/dag/language/edges.ts';
import { type LoadedDag, loadDag, type LoadOptions } from '../../src/dag/language/load.ts';
import { formatProblem } from '../../src/dag/language/problem.ts';

function load(files: Readonly<Record<string, string>>, options: LoadOptions = {}, dags = ['x.dag']): LoadedDag {
  const source = {
    read: (path: string) => (Object.hasOwn(files, path) ? files[path] : undefined),
    absolute: (path: string) => `/d/${path}`,
  };
  return loadDag(dags, source, options);
}

function errors(loaded: LoadedDag): readonly string[] {
  return loaded.problems.filter((p) => p.severity === 'error').map(formatProblem);
}

function edges(dag: DagGraph): readonly string[] {
  const all: string[] = [];
  for (let node = 0; node < dag.size; node++) {
    for (const child of childrenOf(dag, node)) all.push(`${nameOf(dag, node)}>${nameOf(dag, child)}`);
  }
  return all.sort();
}

function varsOf(text: string): readonly NodeVar[] {
  const { dag } = load({ 'x.dag': `JOB A a.sub\n${text}\n` });
  return dag.vars.get(0) ?? [];
}

describe('words and lines', () => {
  it('joins continued lines, and leaves out comments even between them', () => {
    const { dag } = load({ 'x.dag': 'JOB A a.sub\nJOB B b.sub\n// so\nPARENT A \\\n# not this\n\n  CHILD \\\nB\n' });
    expect(edges(dag)).toEqual(['A>B']);
  });

  it('refuses a file that ends inside a continued line', () => {
    expect(errors(load({ 'x.dag': 'JOB A a.sub \\\n' }))[0]).toContain('x.dag:1');
  });

  it('takes a submit file with blanks in quotes', () => {
    const { dag } = load({ 'x.dag': 'JOB A "my file.sub" DIR \'some dir\'\n' });
    expect([dag.texts[dag.submit[0] ?? 0], dag.texts[dag.directory[0] ?? 0]]).toEqual(['my file.sub', 'some dir']);
  });

  it.each([
    ['VARS A a="it\'s" b="say \\"hi\\""', ["a=it's", 'b=say "hi"']],
    ['VARS A a = "1" b= \'2 3\' c =4', ['a=1', 'b=2 3', 'c=4']],
    ['VARS A a="tab\\tx" e=""', ['a=tabtx', 'e=']],
    ['VARS A a="1"junk', ['a=1"jun']],
    ['VARS A +Foo="\\"bar\\""', ['My.Foo="bar"']],
    ['VARS A a="1"\nVARS A a="2"', ['a=2']],
  ])('%s', (text, wanted) => {
    expect(varsOf(text).map((v) => `${v.name}=${v.value}`)).toEqual(wanted);
  });

  it('keywords and their options are written in any case, with - or _', () => {
    const text = 'job A a.sub noop\nabort_dag_on A 3 return 4\nPre-Skip A 2\nretry A 1 unless_exit 5\n';
    const { dag, problems } = load({ 'x.dag': text });
    expect(problems).toEqual([]);
    expect([dag.abortOn.get(0), dag.preSkip.get(0), dag.unlessExit.get(0)]).toEqual([{ status: 3, code: 4 }, 2, 5]);
  });

  it('proposes the word that was meant', () => {
    const { problems } = load({ 'x.dag': 'JOB A a.sub\nPRAENT A CHILD A\n' });
    expect(problems[0]).toMatchObject({ line: 2, remedy: 'Did you mean PARENT?' });
  });
});

describe('any text', () => {
  const word = fc.constantFrom(
    'JOB',
    'A',
    'B',
    'S',
    'PARENT',
    'CHILD',
    'VARS',
    'x="1"',
    '"',
    "'",
    '\\',
    '{',
    '}',
    'SPLICE',
    'i.dag',
    'RETRY',
    '-1',
    '3',
    'SCRIPT',
    'PRE',
    'DEFER',
    'ALL_NODES',
    'INCLUDE',
    'FINAL',
    '@=e',
    '@e',
    '=',
    '#',
    'CONNECT',
    'PIN_IN',
    'PIN_OUT',
    'DONE',
    'é',
    '',
  );
  const text = fc.array(
    fc.array(word, { maxLength: 7 }).map((words) => words.join(' ')),
    { maxLength: 14 },
  );

  it('gives a graph and problems that name a file and one of its lines, never an exception', () => {
    fc.assert(
      fc.property(text, text, (main, inner) => {
        const loaded = load({ 'x.dag': main.join('\n'), 'i.dag': inner.join('\n') });
        for (const problem of loaded.problems) {
          expect(['x.dag', 'i.dag']).toContain(problem.file);
          expect(problem.line).toBeLessThanOrEqual((problem.file === 'x.dag' ? main : inner).length);
          expect(problem.message).not.toBe('');
        }
        for (let node = 0; node < loaded.dag.size; node++) {
          for (const child of childrenOf(loaded.dag, node)) expect(parentsOf(loaded.dag, child)).toContain(node);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('also of any characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (any) => {
        expect(load({ 'x.dag': any }).dag.size).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 400 },
    );
  });
});

describe('dependencies', () => {
  it('are kept once each, in both directions, and strong if one of equals is', () => {
    const pair = fc.tuple(fc.nat(9), fc.nat(9), fc.boolean());
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 60 }), (pairs) => {
        const list = new EdgeList();
        const weak = new Map<string, boolean>();
        for (const [from, to, isWeak] of pairs) {
          list.add(from, to, isWeak);
          weak.set(`${from} ${to}`, isWeak && (weak.get(`${from} ${to}`) ?? true));
        }
        const rows = list.rows(10);
        const down = new Map<string, boolean>();
        const up = new Set<string>();
        for (let n = 0; n < 10; n++) {
          for (let i = rows.childStart[n] ?? 0; i < (rows.childStart[n + 1] ?? 0); i++) {
            down.set(`${n} ${rows.childList[i]}`, rows.childWeak?.[i] === 1);
          }
          for (let i = rows.parentStart[n] ?? 0; i < (rows.parentStart[n + 1] ?? 0); i++)
            up.add(`${rows.parentList[i]} ${n}`);
        }
        expect(Object.fromEntries(down)).toEqual(Object.fromEntries(weak));
        expect([...up].sort()).toEqual([...weak.keys()].sort());
        expect(rows.count).toBe(weak.size);
      }),
    );
  });

  it('between many parents and many children go through a join node, unless the settings disable it', () => {
    const text = 'JOB A a.sub\nJOB B a.sub\nJOB C a.sub\nJOB D a.sub\nPARENT A B CHILD C D\n';
    const joined = load({ 'x.dag': text }).dag;
    expect(edges(joined)).toEqual([
      'A>_condor_join_node0',
      'B>_condor_join_node0',
      '_condor_join_node0>C',
      '_condor_join_node0>D',
    ]);
    expect((joined.flags[4] ?? 0) & FLAG.noop).toBe(FLAG.noop);
    const plain = load({ 'x.dag': `${text}CONFIG c\n`, c: 'DAGMAN_USE_JOIN_NODES = False\n' }).dag;
    expect(edges(plain)).toEqual(['A>C', 'A>D', 'B>C', 'B>D']);
  });
});

describe('splices and includes', () => {
  const inner = 'JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B\n';

  it('take the names of their nodes from where they stand, and their DIR before that of a node', () => {
    const files = {
      'x.dag': 'SPLICE O o.dag DIR out\nJOB Z z.sub\nPARENT O CHILD Z\n',
      'out/o.dag': 'SPLICE I i.dag DIR in\n',
      'out/in/i.dag': `${inner}JOB C c.sub DIR deep\n`,
    };
    const { dag, problems } = load(files);
    expect(problems).toEqual([]);
    expect(edges(dag)).toEqual(['O+I+A>O+I+B', 'O+I+B>Z', 'O+I+C>Z']);
    expect(dag.texts[dag.directory[dag.byName.get('O+I+C') ?? 0] ?? 0]).toBe('out/in/deep');
  });

  it('are known to commands behind an INCLUDE as before it', () => {
    const files = {
      'x.dag': 'SPLICE S i.dag\nINCLUDE more\nJOB Z z.sub\nPARENT S CHILD Z Y\n',
      'i.dag': inner,
      more: 'JOB Y y.sub\n',
    };
    expect(errors(load(files))).toEqual([]);
  });

  it('run their SERVICE nodes too', () => {
    const { dag } = load({ 'x.dag': 'SPLICE S i.dag\nJOB Z z.sub\n', 'i.dag': `${inner}SERVICE W w.sub\n` });
    expect(dag.services.map((node) => nameOf(dag, node))).toEqual(['S+W']);
  });

  it('that read themselves are refused', () => {
    expect(errors(load({ 'x.dag': 'INCLUDE x.dag\nJOB A a.sub\n' }))).toEqual([
      'x.dag:1 Failed to parse INCLUDE command: Recursive file inclusion detected',
    ]);
  });
});

describe('several DAG files', () => {
  it('number the names of their nodes', () => {
    const files = { 'x.dag': 'JOB A a.sub\nJOB B b.sub\nPARENT A CHILD B\n', 'y.dag': 'JOB A a.sub\nRETRY A 2\n' };
    const { dag } = load(files, {}, ['x.dag', 'y.dag']);
    expect(dag.names).toEqual(['0.A', '0.B', '1.A']);
    expect([...dag.retryMax]).toEqual([0, 0, 2]);
  });

  it('with different CONFIG files are refused', () => {
    const files = { 'x.dag': 'CONFIG a\n', 'y.dag': 'CONFIG b\n', a: '', b: '' };
    expect(errors(load(files, {}, ['x.dag', 'y.dag']))[0]).toContain(
      'y.dag:1 Failed to parse CONFIG command: Conflicting',
    );
  });
});

describe('a CONFIG file', () => {
  it('is read line by line; what is wrong is named with its line', () => {
    const loaded = load({
      'x.dag': 'CONFIG c\n',
      c: '# so\nDAGMAN_MAX_JOBS_IDLE = many\nDAGMAN_USE_STRICT = 0\nnonsense\nDAGMAN_NO_SUCH = 1\n',
    });
    expect(loaded.settings.DAGMAN_USE_STRICT).toBe(0);
    expect(loaded.problems.map((p) => [p.line, p.severity])).toEqual([
      [2, 'error'],
      [4, 'error'],
      [5, 'warning'],
    ]);
  });
});
