import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { layOut } from '../../src/dag/draw/layout.ts';
import { drawMermaid } from '../../src/dag/draw/mermaid.ts';
import { pictureOf } from '../../src/dag/draw/picture.ts';
import { drawSvg } from '../../src/dag/draw/svg.ts';
import type { DagGraph } from '../../src/dag/language/graph.ts';
import { type LoadedDag, loadDag } from '../../src/dag/language/load.ts';
import { lintDag } from '../../src/dag/lint.ts';
import { formatProblem, refusal } from '../../src/dag/language/problem.ts';

function load(text: string): LoadedDag {
  return loadDag(['x.dag'], { read: (path) => (path === 'x.dag' ? text : undefined), absolute: (path) => path });
}

function lint(
  text: string,
  files: Readonly<Record<string, string>>,
  executable: readonly string[] = [],
): readonly string[] {
  const has = (path: string): boolean =>
    Object.keys(files).some((file) => file === path || file.startsWith(`${path}/`));
  const found = lintDag(load(text), {
    read: (path) => files[path],
    exists: has,
    executable: (path) => executable.includes(path),
    isSubmitCommand: (name) => name === 'request_memory',
  });
  return found.map((p) => `${p.severity} ${formatProblem(p)}`);
}

describe('lint', () => {
  it('names the nodes of a cycle', () => {
    const found = lint('JOB S s\nJOB A s\nJOB B s\nPARENT S CHILD A\nPARENT A CHILD B\nPARENT B CHILD A\n', { s: '' });
    expect(found).toEqual(['error x.dag:2 Cycle detected: A -> B -> A']);
  });

  it('finds what is missing; what may yet be made is a warning', () => {
    const text =
      'JOB A a\nJOB B b DIR d\nJOB C c\nJOB P p\nSCRIPT PRE P make.sh\nPARENT A CHILD C\nJOB N n NOOP\nSUBDAG EXTERNAL D in.dag\n';
    expect(lint(text, { 'make.sh': '' }, ['make.sh'])).toEqual([
      'error x.dag:1 The submit file a of node A does not exist',
      'error x.dag:2 The directory d of node B does not exist',
      'warning x.dag:3 The submit file c of node C does not exist',
      'warning x.dag:4 The submit file p of node P does not exist',
      'error x.dag:8 The DAG file in.dag of node D does not exist',
    ]);
  });

  it('finds scripts that cannot be executed', () => {
    const text = 'JOB A a DIR d\nSCRIPT PRE A gone.sh\nSCRIPT POST A plain.sh x\nSCRIPT HOLD A /bin/ok\n';
    expect(lint(text, { 'd/a': '', 'd/plain.sh': '', '/bin/ok': '' }, ['/bin/ok'])).toEqual([
      'error x.dag:1 The PRE script d/gone.sh does not exist',
      'error x.dag:1 The POST script d/plain.sh is not executable',
    ]);
  });

  it('finds VARS that nothing uses', () => {
    const text = 'JOB A a\nVARS A used="1" other="$(inner)" inner="x" request_memory="1G" +Foo="2" lost="3" also="4"\n';
    const files = { a: 'arguments = $(used) $INT(also) $(other)\nqueue\n' };
    expect(lint(text, files)).toEqual(['warning x.dag:1 VARS lost of node A is not used by its submit description']);
  });

  it('is a refusal with all errors in it', () => {
    const { problems } = load('JOB A\nRETRY B 1\n');
    const error = refusal(problems);
    expect(error.message.split('\n')).toEqual([
      'x.dag:1 Failed to parse JOB command: No submit description provided',
      'x.dag:2 Failed to parse RETRY command: References undefined node B',
    ]);
  });
});

function chain(nodes: number, width: number): DagGraph {
  const lines: string[] = [];
  for (let i = 0; i < nodes; i++) {
    lines.push(`JOB n${i} s`);
    if (i >= width) lines.push(`PARENT n${i - width} CHILD n${i}`);
  }
  return load(lines.join('\n')).dag;
}

describe('a drawing', () => {
  it('has every node, coloured by its state, and is well-formed whatever the names are', () => {
    const { dag } = load('JOB A<&>"b s\nJOB B s\nPARENT A<&>"b CHILD B\n'.replaceAll('"b', "'b'"));
    const svg = drawSvg(dag, 'a<b>&"c"', Uint8Array.of(5, 6));
    expect(svg).toContain('<g class="done">');
    expect(svg).toContain('<g class="error">');
    expect(svg.replaceAll(/&(amp|lt|gt|quot);/g, '')).not.toMatch(/&/);
    expect(svg.match(/<(g|svg|text|title|style|defs|marker)[ >]/g)?.length).toBe(
      svg.match(/<\/(g|svg|text|title|style|defs|marker)>/g)?.length,
    );
    expect(drawMermaid(dag)).toContain('n0["A&lt;&amp;&gt;\'b\'"]');
  });

  it('draws a join node as a point, without an invented name', () => {
    const { dag } = load('JOB A s\nJOB B s\nJOB C s\nJOB D s\nPARENT A B CHILD C D\n');
    expect(pictureOf(dag).boxes.map(({ label }) => label)).toEqual(['A', 'B', 'C', 'D', '•']);
  });

  it('of a thousand nodes has few boxes, which stand for all of them', () => {
    for (const dag of [chain(1000, 300), chain(1000, 1), chain(1000, 7)]) {
      const picture = pictureOf(dag);
      expect(picture.boxes.length).toBeLessThan(60);
      expect(picture.boxes.flatMap((box) => box.nodes).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 1000 }, (_, i) => i),
      );
    }
  });

  it('has no two boxes in one place, and all of them inside', () => {
    for (const dag of [chain(9, 3), chain(55, 20), chain(1000, 40)]) {
      const { placed, width, height } = layOut(pictureOf(dag));
      for (const [i, a] of placed.entries()) {
        expect(a.x).toBeGreaterThanOrEqual(0);
        expect(a.x + a.width).toBeLessThanOrEqual(width);
        expect(a.y + a.height).toBeLessThanOrEqual(height);
        for (const b of placed.slice(i + 1)) {
          expect(a.y !== b.y || a.x + a.width < b.x || b.x + b.width < a.x).toBe(true);
        }
      }
    }
  });
});

describe('the examples', () => {
  const folder = join(import.meta.dirname, '../../examples/dag');
  const at = (path: string): string => join(folder, path);
  it.each(readdirSync(folder).filter((name) => name.endsWith('.dag')))('%s has nothing for lint to find', (name) => {
    const read = (path: string): string => readFileSync(at(path), 'utf8');
    const loaded = loadDag([name], { read, absolute: at });
    const found = lintDag(loaded, {
      read,
      exists: (path) => statSync(at(path), { throwIfNoEntry: false }) !== undefined,
      executable: (path) => (statSync(at(path)).mode & 0o111) !== 0,
      isSubmitCommand: () => false,
    });
    expect(found.map(formatProblem)).toEqual([]);
    expect(loaded.dag.size).toBeGreaterThan(1);
  });
});
