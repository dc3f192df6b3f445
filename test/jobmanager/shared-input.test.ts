import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { localFork } from '../conformance/grounds.ts';
import { blob, freshKey, type Ground, spec, Watch } from '../conformance/kit.ts';

let ground: Ground;
beforeAll(async () => {
  ground = await localFork({ slots: 1 });
});
afterAll(() => ground.close());

it('an input that another job was prepared with meanwhile outlives the job that ends', {
  timeout: 60_000,
}, async () => {
  const site = await ground.open();
  const watch = new Watch(site);
  const go = `${ground.scratch}/go`;
  const program = blob(ground.scratch, 'program', `#!/bin/sh\nwhile [ ! -e '${go}' ]; do sleep 0.05; done\n`);
  const [first, second] = [freshKey(), freshKey()];
  const job = (key: typeof first) => spec(key, { executable: { kind: 'blob', blob: program }, args: [] });
  await site.prepare([job(first)]);
  await site.commit([first]);
  const running = await watch.until(first, (r) => r.is === 'running', ground.patience);
  const since = running.is === 'running' ? (running.since ?? 0) : 0;
  // The input's time has a resolution of one second on some file systems.
  while (Date.now() / 1000 < since + 1.1) await new Promise((done) => setTimeout(done, 50));
  await site.prepare([job(second)]);
  writeFileSync(go, '');
  await watch.until(first, (r) => r.is === 'ended', ground.patience);
  await site.commit([second]);
  const end = await watch.until(second, (r) => r.is === 'ended', ground.patience);
  expect(end).toMatchObject({ how: { kind: 'exited', code: 0 } });
  await site.forget([first, second]);
});
