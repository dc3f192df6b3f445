import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { dumped, HELPER } from './mover.ts';

const TURNS = 60;
/** It has 40 MB, so that writing its image takes a while, and counts as long as there is no file `over`. */
const COUNTER = `import os, time
m = os.urandom(40 << 20); n = 0
while not os.path.exists('over'):
  n += 1; print(n, flush=True); time.sleep(0.001)
print('ended', n, len(m))`;

describe.skipIf(!existsSync(HELPER) || !SLOW)('gryphus-helper that is killed while it writes an image', () => {
  const root = mkdtempSync(join(tmpdir(), 'gryphus-killed-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('leaves the job as it was, or an image from which it goes on, and never half of one', async () => {
    const image = join(root, 'image');
    let kept = '';
    let boxes = 0;
    let box = '';
    let child: ChildProcess | undefined;
    let restored = false;
    const stdout = () => `${box}.out`;
    const start = (words: (box: string) => readonly string[]) => {
      box = join(root, `box${boxes++}`);
      mkdirSync(box);
      const [program = '', ...args] = words(box);
      child = spawn(program, args, { cwd: box, stdio: ['ignore', openSync(stdout(), 'w'), 'ignore'] });
    };
    const alive = () => child?.exitCode === null && child.signalCode === null;
    const dump = () => [
      'dump',
      restored ? '--below' : '--pid',
      String(child?.pid),
      '--sandbox',
      box,
      '--to',
      image,
      '--stdout',
      stdout(),
    ];
    const goesOn = async () => {
      for (let before = statSync(stdout()).size; statSync(stdout()).size === before; ) await sleep(5);
    };
    const saved = async () => (child ? dumped(child, dump()) : 'it was not started');
    start(() => [HELPER, 'run', 'python3', '-c', COUNTER]);
    await goesOn();
    const began = performance.now();
    expect(await saved()).toBe('');
    const took = performance.now() - began;
    let deaths = 0;
    let whole = 0;
    for (let turn = 0; turn < TURNS; turn++) {
      const helper = spawn(HELPER, dump(), { stdio: 'ignore' });
      const over = new Promise((resolve) => helper.once('close', resolve));
      // From its first moment to well beyond its last.
      await Promise.race([over, sleep(((turn % 12) / 11) * 3 * took)]);
      helper.kill('SIGKILL');
      await over;
      // Whatever was being done, an image that is there is whole.
      const { status, stdout: said } = spawnSync(HELPER, ['inspect', image], { encoding: 'utf8' });
      expect(status).toBe(0);
      if (helper.exitCode === 0) whole++;
      await sleep(20);
      if (alive()) continue;
      deaths++;
      // The death of the helper in its worst moment ends the job: it goes on from the last whole image.
      const bytes = Number(/standard output had (\d+) bytes/.exec(said)?.[1]);
      kept += readFileSync(stdout(), 'latin1').slice(0, bytes);
      start((fresh) => [HELPER, 'restore', '--from', image, '--sandbox', fresh]);
      restored = true;
      await goesOn();
      // Its output begins anew: an image that is older than this must not be used for it.
      expect(await saved()).toBe('');
    }
    spawnSync('touch', [join(box, 'over')]);
    await new Promise((resolve) => child?.once('close', resolve));
    const lines = `${kept}${readFileSync(stdout(), 'latin1')}`.trim().split('\n');
    const last = lines.length - 1;
    expect(lines).toEqual([...Array.from({ length: last }, (_, n) => String(n + 1)), `ended ${last} ${40 << 20}`]);
    // It was killed early and late.
    expect(whole, `${deaths} of ${TURNS} jobs died with it`).toBeGreaterThan(0);
    expect(whole).toBeLessThan(TURNS);
  }, 300_000);
});
