import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readyDag } from '../../src/client/dag-submit.ts';
import type { DagRun } from '../../src/dag/manager/prepare.ts';
import type { NodeSubmit } from '../../src/dag/manager/world.ts';
import { subdagDescription } from '../../src/dag/subdag.ts';
import { type DagOrder, orderArguments, readOrder } from '../../src/dag/words.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gdag-'));
  writeFileSync(join(dir, 'a.sub'), 'executable = /bin/true\nqueue\n');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function write(name: string, text: string): void {
  writeFileSync(join(dir, name), text);
}

describe('the arguments of a manager', () => {
  it('say all of an order', () => {
    const order: DagOrder = {
      files: ['x.dag', "y 'z'.dag"],
      limits: { maxJobs: 0, maxIdle: 1, maxPre: 2, maxPost: 3, maxHold: 4 },
      useDagDir: true,
      alwaysRunPost: false,
      suppressNotification: true,
      force: true,
      importEnv: true,
      batchName: 'b n',
      saveFile: 's',
      rescueFile: 'r',
      configFile: 'c',
      outfileDir: 'o',
      notification: 'never',
      priority: -3,
      rescueFrom: 2,
      parentDagmanId: 7,
      autoRescue: false,
      includeEnv: ['A', 'B*'],
    };
    expect(readOrder(orderArguments(order))).toEqual(order);
  });
});

const OUTER = { files: ['x.dag'], dagmanId: 5, version: '' };

function sub(outer: Partial<DagRun>, request: Partial<NodeSubmit>): string {
  const full = { node: 'S', retry: 0, priority: 0, ...request } as NodeSubmit;
  return subdagDescription({ ...OUTER, ...outer }, 'in.dag', dir, full);
}

describe('a sub-DAG', () => {
  beforeEach(() => write('in.dag', 'JOB A a.sub\nENV GET OWN\n'));

  it("follows its node's priority and the options that go down", () => {
    const text = sub(
      { outfileDir: 'out', notification: 'error', suppressNotification: true, includeEnv: ['UP'], autoRescue: false },
      { priority: 4 },
    );
    const words = /^arguments = "(.*)"$/m.exec(text)?.[1]?.split(' ') ?? [];
    const order = readOrder(words.slice(words.indexOf('-Dag')));
    expect(order).toEqual({
      files: ['in.dag'],
      limits: {},
      priority: 4,
      outfileDir: 'out',
      notification: 'error',
      suppressNotification: true,
      parentDagmanId: 5,
      autoRescue: false,
      includeEnv: ['OWN', 'UP'],
    });
    expect(text).toMatch(/^notification = error$/m);
    expect(text).toMatch(/^getenv {6}= .*,OWN,UP$/m);
  });

  it('of a DAG that began afresh does so too, but not when its node is tried again', () => {
    write('in.dag.rescue001', 'DONE A\n');
    sub({ force: true }, { retry: 1 });
    expect(existsSync(join(dir, 'in.dag.rescue001'))).toBe(true);
    sub({ force: true }, { retry: 0 });
    expect([existsSync(join(dir, 'in.dag.rescue001')), existsSync(join(dir, 'in.dag.rescue001.old'))]).toEqual([
      false,
      true,
    ]);
  });
});

describe('what a submit asks for', () => {
  it('stands in the description of the manager; values of variables are in its environment alone', () => {
    write('x.dag', 'JOB A a.sub\nENV SET IN_DAG=one two;B=$HOME\n');
    const order = { files: ['x.dag'], notification: 'never' };
    const { file } = readyDag({ order, insertEnv: ['"OPT=\'a b\'"'], includeEnv: ['SEEN'] }, dir);
    const text = readFileSync(join(dir, file), 'utf8');
    const line = (name: string) => new RegExp(`^${name} *= (.*)$`, 'm').exec(text)?.[1];
    expect(line('environment')).toContain("IN_DAG=one' 'two");
    expect(line('environment')).toContain("OPT=a' 'b");
    expect(line('environment')).toContain('B=$(DOLLAR)HOME');
    expect(line('arguments')).not.toContain('one two');
    expect(line('arguments')).toContain('-Include_Env SEEN -Include_Env OPT -Include_Env IN_DAG -Include_Env B');
    expect(line('getenv')).toMatch(/,SEEN$/);
    expect(line('notification')).toBe('never');
  });

  it('-update_submit keeps the limits of the submit before, where it names no others; so does a sub-DAG', () => {
    write('x.dag', 'JOB A a.sub\n');
    const maxima = (): readonly string[] =>
      readFileSync(join(dir, 'x.dag.condor.sub'), 'utf8').match(/-Max\w+ \d+/g) ?? [];
    readyDag({ order: { files: ['x.dag'], limits: { maxJobs: 5, maxPre: 2 } } }, dir);
    readyDag({ order: { files: ['x.dag'], limits: { maxPre: 3 } }, updateSubmit: true }, dir);
    expect(maxima()).toEqual(['-MaxJobs 5', '-MaxPre 3']);
    subdagDescription(OUTER, 'x.dag', dir, { node: 'S', retry: 0, priority: 0 } as NodeSubmit);
    expect(maxima()).toEqual(['-MaxJobs 5', '-MaxPre 3']);
    readyDag({ order: { files: ['x.dag'] }, force: true }, dir);
    expect(maxima()).toEqual([]);
  });

  it('-import_env takes the whole environment', () => {
    write('x.dag', 'JOB A a.sub\n');
    readyDag({ order: { files: ['x.dag'], importEnv: true } }, dir);
    expect(readFileSync(join(dir, 'x.dag.condor.sub'), 'utf8')).toMatch(/^getenv {6}= true$/m);
  });

  it('-RescueFile continues from any file; a missing one is refused', () => {
    write('x.dag', 'JOB A a.sub\nJOB B gone.sub\n');
    write('x.dag.condor.sub', '');
    write('mine', 'DONE B\n');
    expect(readyDag({ order: { files: ['x.dag'], rescueFile: 'mine' } }, dir).file).toBe('x.dag.condor.sub');
    write('gone.sub', '');
    expect(() => readyDag({ order: { files: ['x.dag'], rescueFile: 'none' } }, dir)).toThrow(/none/);
  });

  it('the number of rescue files that count is that of the CONFIG file', () => {
    write('x.dag', 'JOB A a.sub\nCONFIG c\n');
    write('c', 'DAGMAN_MAX_RESCUE_NUM = 1\n');
    for (const name of ['x.dag.rescue001', 'x.dag.rescue002']) write(name, '');
    readyDag({ order: { files: ['x.dag'] }, force: true }, dir);
    expect([existsSync(join(dir, 'x.dag.rescue001')), existsSync(join(dir, 'x.dag.rescue002'))]).toEqual([false, true]);
  });
});
