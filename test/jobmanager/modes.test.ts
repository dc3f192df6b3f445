import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { localFork } from '../conformance/grounds.ts';
import { freshKey, type Ground, shellJob, Watch } from '../conformance/kit.ts';

let ground: Ground;
beforeAll(async () => {
  ground = await localFork();
});
afterAll(() => ground.close());

it('the modes that a job chose for its results are reported, and no others', { timeout: 60_000 }, async () => {
  const site = await ground.open();
  const key = freshKey();
  const script = `mkdir 'a b'; umask
for mode in 644 755 600 640 700 444 664 777; do echo x >"a b/é $mode"; chmod $mode "a b/é $mode"; done
head -c 300000 /dev/zero >large; chmod 640 large; echo x >plain; echo secret; umask 077; echo x >late`;
  await site.prepare([shellJob(key, script)]);
  await site.commit([key]);
  await new Watch(site).until(key, (report) => report.is === 'ended', ground.patience);
  const into = join(ground.scratch, 'into');
  mkdirSync(into);
  const request = { key, outputs: ['a b', 'large', 'plain', 'late'], stdout: true, stderr: true, into };
  const outcome = (await site.fetch([request])).get(key);
  const files = outcome?.ok ? outcome.files : [];
  expect(Object.fromEntries(files.map(({ name, mode }) => [name, mode?.toString(8)]))).toEqual({
    'a b/é 644': undefined,
    'a b/é 755': undefined,
    'a b/é 600': '600',
    'a b/é 640': '640',
    'a b/é 700': '700',
    'a b/é 444': '444',
    'a b/é 664': '664',
    'a b/é 777': '777',
    large: '640',
    plain: undefined,
    late: '600',
    stdout: undefined,
    stderr: undefined,
  });
  const programs = new Set(files.filter(({ executable }) => executable).map(({ name }) => name));
  expect(programs).toEqual(new Set(['a b/é 700', 'a b/é 755', 'a b/é 777']));
  await site.forget([key]);
});
