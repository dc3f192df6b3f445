import { appendFileSync, chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { diskFiles, FileJournal, Inbox, ScriptRunner } from '../../src/dag/local.ts';
import type { DagRun } from '../../src/dag/manager/prepare.ts';
import type { Happening, ScriptRun } from '../../src/dag/manager/world.ts';
import { claimSubmission, submissionFiles } from '../../src/dag/submission.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'gd-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function script(name: string, text: string, mode = 0o755): void {
  writeFileSync(join(root, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(root, name), mode);
}

type Ended = Extract<Happening, { readonly is: 'script-ended' }>;

async function run(
  argv: readonly string[],
  more: Partial<ScriptRun> = {},
  during?: (runner: ScriptRunner) => void,
): Promise<Ended> {
  return new Promise((done) => {
    const runner = new ScriptRunner(root, { PATH: '/usr/bin:/bin' }, done);
    runner.start({ node: 'A', type: 'PRE', run: 7, directory: '', capture: undefined, argv, ...more });
    during?.(runner);
  });
}

describe('a script', () => {
  it('gets its words as they are: no shell sees them', async () => {
    script('s.sh', 'printf "%s|" "$@"');
    const ended = await run(['s.sh', '$(touch x)', 'a;b', "it's", '"q"', 'é\n'], { capture: 'STDOUT' });
    expect(ended).toEqual({ is: 'script-ended', run: 7, end: { code: 0 }, output: '$(touch x)|a;b|it\'s|"q"|é\n|' });
  });

  it('runs in the directory of its node, and its exit code is known', async () => {
    script('s.sh', 'pwd > here; exit 3');
    expect(await run(['s.sh'])).toMatchObject({ end: { code: 3 } });
    expect(readFileSync(join(root, 'here'), 'utf8').trim()).toBe(root);
  });

  it('that dies on a signal says so', async () => {
    script('s.sh', 'kill -15 $$');
    expect(await run(['s.sh'])).toMatchObject({ end: { signal: 15 } });
  });

  it.each([
    ['is not there', 'gone.sh', 'No such file'],
    ['is in PATH only', 'true', 'No such file'],
    ['cannot be executed', 'plain.sh', 'chmod +x'],
  ])('that %s fails with 1, and why', async (_case, name, why) => {
    script('plain.sh', 'true', 0o644);
    const ended = await run([name]);
    expect(ended.end).toEqual({ code: 1 });
    expect(ended.notStarted).toContain(why);
  });

  it('whose node has a directory that is not there fails with 1', async () => {
    script('s.sh', 'true');
    expect((await run(['s.sh'], { directory: 'nowhere' })).notStarted).toContain('nowhere');
  });

  it('is killed with what it has started', async () => {
    script('s.sh', '(sleep 60; touch survived) & echo $! > child; wait');
    const ended = await run(['s.sh'], {}, (runner) => {
      const look = setInterval(() => {
        if (!existsSync(join(root, 'child')) || readFileSync(join(root, 'child'), 'utf8').trim() === '') return;
        clearInterval(look);
        runner.killAll();
      }, 5);
    });
    expect(ended.end).toEqual({ signal: 9 });
    const child = Number(readFileSync(join(root, 'child'), 'utf8'));
    await expect.poll(() => alive(child)).toBe(false);
  });
});

/** A process that has not been waited for is not alive. */
function alive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

describe('a journal', () => {
  it('is read back without the entry that a crash cut off, and continues after it', () => {
    const path = join(root, 'journal');
    const first = new FileJournal(path);
    first.append({ at: 1, events: [{ is: 'halt' }], sizes: [1, 2, 3] });
    first.append({ at: 2, events: [], sizes: [], cursor: 'é' });
    first.close();
    appendFileSync(path, '{"at":3,"eve');
    const second = new FileJournal(path);
    expect(second.read().map((e) => e.at)).toEqual([1, 2]);
    second.append({ at: 4, events: [], sizes: [] });
    second.close();
    expect(new FileJournal(path).read().map((e) => e.at)).toEqual([1, 2, 4]);
  });
});

describe('an inbox', () => {
  it('wakes who waits, and does not wait for what is there', async () => {
    const inbox = new Inbox();
    const waiting = inbox.take(undefined);
    inbox.put({ is: 'told', event: { is: 'halt' } });
    expect(await waiting).toEqual([{ is: 'told', event: { is: 'halt' } }]);
    inbox.put({ is: 'told', event: { is: 'remove' } });
    expect(await inbox.take(undefined)).toEqual([{ is: 'told', event: { is: 'remove' } }]);
    expect(await inbox.take(Date.now() - 1)).toEqual([]);
    expect(await inbox.take(Date.now() + 5)).toEqual([]);
  });

  it('waits for longer than any timer of Node, too', async () => {
    const inbox = new Inbox();
    const waiting = inbox.take(Date.now() + 60 * 86_400_000);
    await delay(20);
    inbox.put({ is: 'told', event: { is: 'halt' } });
    expect(await waiting).toEqual([{ is: 'told', event: { is: 'halt' } }]);
  });
});

describe('a submit where a DAG has run before', () => {
  const dag = (more: Partial<DagRun> = {}): DagRun => ({ files: ['x.dag'], dagmanId: 1, version: '1', ...more });

  beforeEach(() => {
    for (const file of submissionFiles('x.dag')) writeFileSync(join(root, file), '');
  });

  it('is refused, with what can be done', () => {
    expect(() => claimSubmission(dag(), {}, diskFiles(root))).toThrow(
      expect.objectContaining({
        code: 'dag-refused',
        message: '"x.dag.condor.sub" already exists: this DAG was submitted before',
      }),
    );
  });

  it('continues from a rescue file, unless disabled', () => {
    writeFileSync(join(root, 'x.dag.rescue001'), '');
    claimSubmission(dag(), {}, diskFiles(root));
    expect(() => claimSubmission(dag({ autoRescue: false }), {}, diskFiles(root))).toThrow('already exists');
  });

  it('with force moves old files aside, and keeps the rescue files under another name', () => {
    writeFileSync(join(root, 'x.dag.rescue001'), 'one');
    writeFileSync(join(root, 'x.dag.rescue003'), 'three');
    claimSubmission(dag(), { force: true }, diskFiles(root));
    expect(submissionFiles('x.dag').some((file) => existsSync(join(root, file)))).toBe(false);
    expect(existsSync(join(root, 'x.dag.rescue001'))).toBe(false);
    expect(readFileSync(join(root, 'x.dag.rescue003.old'), 'utf8')).toBe('three');
  });

  it('from a rescue file that is not there is refused', () => {
    expect(() => claimSubmission(dag({ rescueFrom: 3 }), {}, diskFiles(root))).toThrow(
      '-dorescuefrom 3 specified, but rescue DAG file x.dag.rescue003 does not exist!',
    );
  });
});
