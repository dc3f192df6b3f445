import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { PlacedJob } from '../job-script.ts';
import { baseIn, type CheckpointEngine, type EngineDir, imageOf, unrestoredBy } from './engine.ts';

/** A loaded machine is slow, and an engine that was given up is not tried again. */
const MOST_MS = 60_000;
const TURN_MS = 20;
/** By which the program shows that it went on. */
const RIGHT = 42;
const PROGRAM = `while [ ! -e go ]; do sleep 0.05; done; exit ${RIGHT}`;

/** Lets an engine checkpoint and restore a small program; why that does not work. */
export async function tryOut(engine: CheckpointEngine): Promise<string | undefined> {
  const path = mkdtempSync(join(tmpdir(), 'gryphus-engine-'));
  const dir: EngineDir = { path, work: join(path, 'work'), stdin: '/dev/null', stream: (name) => join(path, name) };
  const go = () => writeFileSync(join(dir.work, 'go'), '');
  try {
    for (const name of ['work', 'saved', 'base']) mkdirSync(join(path, name), { mode: 0o700 });
    const job = { key: 'try', dir, args: ['-c', PROGRAM] };
    const placed = { program: '/bin/sh', cwd: undefined, stdin: undefined, scratch: dir.work };
    const until = Date.now() + MOST_MS;
    const first = start(engine.start(job, placed), dir.work);
    let trouble: string | undefined = '';
    while (trouble !== undefined && !first.isOver() && Date.now() < until) {
      await delay(TURN_MS);
      ({ trouble } = await engine.dump(job, first.pid, true));
    }
    if (trouble !== undefined) go();
    await first.ended;
    if (trouble !== undefined) return trouble || 'a program could not be started';
    renameSync(imageOf(dir), baseIn(dir));
    const second = start(engine.restore(job, placed), dir.work);
    while (unrestoredBy(dir) !== undefined && !second.isOver() && Date.now() < until) await delay(TURN_MS);
    go();
    if ((await second.ended) === RIGHT) return undefined;
    return engine.unrestored(dir) ?? 'a restored program did not go on';
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

function start({ command = [] }: PlacedJob, cwd: string) {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { cwd, stdio: 'ignore', timeout: MOST_MS });
  let isOver = false;
  const ended = new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('close', resolve);
  }).finally(() => (isOver = true));
  return { pid: child.pid ?? 0, ended, isOver: () => isOver };
}
