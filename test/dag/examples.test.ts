import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Stage } from './support/corpus.ts';

const FOLDER = join(import.meta.dirname, '../../examples/dag');
const FILES = Object.fromEntries(
  readdirSync(FOLDER)
    .filter((name) => /\.(dag|sub|sh)$/.test(name))
    .map((name) => [name, readFileSync(join(FOLDER, name), 'utf8')]),
);

let stage: Stage | undefined;
afterEach(() => {
  stage?.close();
  stage = undefined;
});

describe('the examples run, with their real programs', () => {
  it.each(Object.keys(FILES).filter((name) => name.endsWith('.dag')))('%s', async (name) => {
    stage = new Stage(FILES);
    const outcome = await stage.submit([name]);
    expect(outcome).toMatchObject({ refused: undefined, exitCode: 0 });
    const metrics = JSON.parse(stage.read(`${name}.metrics`) ?? '{}') as Record<string, number>;
    expect(metrics['nodes_succeeded']).toBe(metrics['nodes']);
    expect(metrics['jobs_succeeded']).toBe(metrics['jobs_submitted']);
  });

  it('cms.dag makes one node of a hundred jobs', async () => {
    stage = new Stage(FILES);
    const { world } = await stage.submit(['cms.dag']);
    expect(world?.submits.map((s) => [s.node, s.procs])).toEqual([
      ['simulate', 100],
      ['reconstruct', 1],
    ]);
  });
});

describe('what a run of a DAG writes', () => {
  const SUB = 'executable = /bin/true\nqueue\n';

  it('DEBUG: what a script said, below a line about it', async () => {
    stage = new Stage({
      'x.dag': 'JOB A a.sub\nSCRIPT DEBUG said.txt ALL PRE A s.sh $JOB\n',
      'a.sub': SUB,
      's.sh': '#!/bin/sh\n',
    });
    await stage.submit(['x.dag']);
    expect(stage.read('said.txt')).toMatch(/^\*\*\* Node=A Type=PRE ExitCode=0 Completion=\d+ Cmd='s\.sh A'\n$/);
  });

  it('SAVE_POINT_FILE: what was done when the node began; -load_save continues from there', async () => {
    const dag = 'JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B\nSAVE_POINT_FILE B\n';
    stage = new Stage({ 'x.dag': dag, 'a.sub': SUB });
    await stage.submit(['x.dag']);
    expect(stage.read('save_files/B-x.dag.save')).toContain('\n\nDONE A\n');
    const { world } = await stage.submit(['-f', '-load_save', 'B-x.dag.save', 'x.dag']);
    expect(world?.submits.map((s) => s.node)).toEqual(['B']);
  });

  it('a halt file ends the DAG when what runs has ended', async () => {
    stage = new Stage({
      'x.dag': 'JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B\nSCRIPT POST A halt.sh\n',
      'a.sub': SUB,
      'halt.sh': '#!/bin/sh\n: > x.dag.halt\n',
    });
    const { exitCode } = await stage.submit(['x.dag']);
    expect([exitCode, stage.read('x.dag.rescue001')?.includes('DONE A')]).toEqual([1, true]);
  });

  it('a description that may make one job, and makes two, is a failed submit', async () => {
    const files = {
      'x.dag': 'JOB A a.sub\nCONFIG c\n',
      'a.sub': `${SUB.trim()} 2\n`,
      c: 'DAGMAN_PROHIBIT_MULTI_JOBS = True\n',
    };
    stage = new Stage(files);
    expect((await stage.submit(['x.dag'])).exitCode).toBe(1);
  });

  it('MAXJOBS 0 for a category with nodes, which would hang, is refused', async () => {
    stage = new Stage({ 'x.dag': 'JOB A a.sub\nCATEGORY A c\nMAXJOBS c 0\n', 'a.sub': SUB });
    expect((await stage.submit(['x.dag'])).refused).toContain('lets none of them run');
  });
});
