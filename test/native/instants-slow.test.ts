import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { HELPER, mover } from './mover.ts';

/** Moves altogether, each after a random time of the program; `GRYPHUS_INSTANTS` says another number. */
const INSTANTS = Number(process.env['GRYPHUS_INSTANTS'] ?? 10_000);
/** Moves of one run of the program. */
const IN_ONE_RUN = 200;
const LONGEST_MS = 40;

describe.skipIf(!existsSync(HELPER) || !SLOW)('a program of four threads', () => {
  const root = mkdtempSync(join(tmpdir(), 'gryphus-instants-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it(`has the same result after ${INSTANTS} checkpoints at random instants`, async () => {
    const threads = join(root, 'threads');
    execFileSync('gcc', ['-O2', '-o', threads, join(import.meta.dirname, 'threads.c'), '-lpthread']);
    const moved = mover(root);
    const command = [threads, '300000'];
    const alone = await moved(command, []);
    let done = 0;
    while (done < INSTANTS) {
      const pauses = Array.from({ length: IN_ONE_RUN }, () => Math.random() * LONGEST_MS);
      const { code, out, moves, said, err } = await moved(command, pauses);
      expect({ code, out, done, moves, said, err, pauses }).toEqual({
        code: alone.code,
        out: alone.out,
        done,
        moves,
        said,
        err: '',
        pauses,
      });
      expect(moves).toBeGreaterThan(0);
      done += moves;
      process.stderr.write(`${done} instants: 0 wrong\n`);
    }
  }, 7_200_000);
});
