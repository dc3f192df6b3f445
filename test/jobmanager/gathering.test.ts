import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { localFork } from '../conformance/grounds.ts';
import { freshKey, type Ground, shellJob, Watch } from '../conformance/kit.ts';

let ground: Ground;
beforeAll(async () => {
  ground = await localFork({ slots: 8 });
});
afterAll(() => ground.close());

/** As long as a caller takes to record an answer, milliseconds. */
const RECORDING = 80;

it('news that came while the last was recorded waits for more, three times as long as that took', {
  timeout: 60_000,
}, async () => {
  const site = await ground.open();
  const watch = new Watch(site);
  const keys = Array.from({ length: 4 }, () => freshKey());
  const go = (key: string) => `${ground.scratch}/go.${key}`;
  const jobs = keys.map((key) => shellJob(key, `while [ ! -e '${go(key)}' ]; do sleep 0.05; done`));
  await site.prepare(jobs);
  await site.commit(keys);
  for (const key of keys) await watch.until(key, (report) => report.is === 'running', ground.patience);
  const took: number[] = [];
  for (const key of keys) {
    // An answer, during whose recording a job ends.
    await watch.poll(0);
    writeFileSync(go(key), '');
    while (!existsSync(`${ground.root}/jobs/${key}/exit`)) await sleep(5);
    await sleep(RECORDING);
    const began = performance.now();
    await watch.poll();
    took.push(performance.now() - began);
    await watch.until(key, (report) => report.is === 'ended', ground.patience);
  }
  expect(took.filter((ms) => ms >= 3 * RECORDING).length).toBeGreaterThan(2);
  await site.forget(keys);
});
