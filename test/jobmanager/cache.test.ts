import { existsSync, readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { localFork } from '../conformance/grounds.ts';
import { blob, freshKey, type Ground, spec, Watch } from '../conformance/kit.ts';

let ground: Ground;
beforeAll(async () => {
  ground = await localFork({ slots: 1 });
});
afterAll(() => ground.close());

it('unused content is limited; what a job uses stays', { timeout: 60_000 }, async () => {
  const site = await ground.open();
  const inputs = ['a', 'b', 'c'].map((name) => blob(ground.scratch, name, `#!/bin/sh\n# ${name.repeat(200_000)}\n`));
  const keys = inputs.map(() => freshKey());
  const specs = inputs.map((one, i) =>
    spec(keys[i] ?? freshKey(), { executable: { kind: 'blob', blob: one }, args: [] }),
  );
  await site.prepare(specs);
  const watch = new Watch(site);
  const [a, b, c] = keys as [(typeof keys)[0], (typeof keys)[0], (typeof keys)[0]];
  await site.commit([a, b]);
  for (const key of [a, b]) await watch.until(key, (report) => report.is === 'ended', ground.patience);
  await site.forget([a, b]);
  const cache = readdirSync(ground.root, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\/?cache\/[0-9a-f]{64}/.test(path))
    .map((path) => join(ground.root, path));
  expect(cache.length).toBeGreaterThanOrEqual(3);
  for (const path of cache) utimesSync(path, 1e9, 1e9);

  const strict = await ground.open({ cacheSize: 100 * 1024, cacheFor: 1e9 });
  await strict.poll({ cursor: undefined, follow: [] });
  expect(cache.filter((path) => existsSync(path)).map((path) => path.includes(inputs[2]?.sha256 ?? '?'))).toEqual([
    true,
  ]);
  await site.commit([c]);
  await watch.until(c, (report) => report.is === 'ended', ground.patience);
  await site.forget([c]);
});
