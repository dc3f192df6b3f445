import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export const HELPER = join(
  import.meta.dirname,
  '../..',
  process.env['GRYPHUS_DIST'] ?? 'dist',
  `native/${process.arch}/gryphus-helper`,
);

export interface Moved {
  readonly code: number | null;
  readonly out: string;
  readonly moves: number;
  /** Why the last checkpoint was not made; '' if it was. */
  readonly said: string;
  /** The standard error of the last start: the program's, or the helper's that restored it. */
  readonly err: string;
}

/**
 * Runs programs in sandboxes below `root`: each in one of its own, moved to another after each of these times in
 * milliseconds.
 */
export function mover(root: string): (command: readonly string[], pauses: readonly number[]) => Promise<Moved> {
  let boxes = 0;
  return async (command, pauses) => {
    const image = join(root, `image${boxes}`);
    let box = join(root, `box${boxes++}`);
    mkdirSync(box);
    let words: readonly string[] = [HELPER, 'run', ...command];
    let out = '';
    let moves = 0;
    for (let turn = 0; ; turn++) {
      const stdout = `${box}.out`;
      const [program = '', ...args] = words;
      const stderr = `${box}.err`;
      const [one, two] = [openSync(stdout, 'w'), openSync(stderr, 'w')];
      const child = spawn(program, args, { cwd: box, stdio: ['ignore', one, two] });
      closeSync(one);
      closeSync(two);
      const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
      const pause = pauses[turn];
      if (pause !== undefined) await Promise.race([ended, new Promise((resume) => setTimeout(resume, pause))]);
      // A restored program is below the helper that waits for it.
      const of = [turn === 0 ? '--pid' : '--below', String(child.pid)];
      const dump = ['dump', ...of, '--sandbox', box, '--to', image, '--stdout', stdout, '--stderr', stderr, '--kill'];
      const said = pause === undefined ? 'it was not asked' : await dumped(child, dump);
      const code = await ended;
      out += readFileSync(stdout, 'latin1');
      if (said !== '') return { code, out, moves, said, err: readFileSync(stderr, 'latin1') };
      rmSync(stdout);
      rmSync(stderr);
      moves++;
      rmSync(box, { recursive: true });
      box = join(root, `box${boxes++}`);
      mkdirSync(box);
      words = [HELPER, 'restore', '--from', image, '--sandbox', box];
    }
  };
}

/**
 * Tries until the program has ended: what prevents a checkpoint may pass. Returns '' if there is an image, or why not.
 */
export async function dumped(child: ChildProcess, words: readonly string[]): Promise<string> {
  let said = 'it had ended';
  while (child.exitCode === null && child.signalCode === null) {
    const { status, stderr } = spawnSync(HELPER, words, { encoding: 'utf8' });
    if (status === 0) return '';
    said = stderr;
    await new Promise((resume) => setTimeout(resume, 20));
  }
  return said;
}
