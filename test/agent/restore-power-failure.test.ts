import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { restoreBackup } from '../../src/client/restore-backup.ts';
import { loadPaths } from '../../src/config/paths.ts';
import { armCrash, SimulatedCrash } from '../../src/util/crash-point.ts';
import { FlushedDisk } from '../flushed-disk.ts';
import { TestAgent } from './agent.ts';

let agent: TestAgent;
let disk: FlushedDisk;
beforeAll(() => {
  agent = new TestAgent();
});
afterAll(async () => {
  armCrash(undefined);
  disk?.end();
  await agent.end();
});

it('a restored state is on disk before any site learns of it', async () => {
  agent.site('c1', { url: 'local', batch: 'fork' });
  const file = join(agent.dir, 'backup');
  const cluster = await agent.submit('executable = /bin/true\nhold = true\nlog = log\nqueue 3\n');
  await agent.ok('backup', file);
  await agent.ok('down');
  disk = await FlushedDisk.begin();
  const paths = loadPaths({ ...process.env, GRYPHUS_HOME: disk.path('new/g'), REDIS_URL: undefined });
  armCrash('restore.placed');
  const asked = { file, passphrase: () => Promise.reject(new Error('it is not encrypted')), into: disk.path('into') };
  await expect(restoreBackup(paths, asked)).rejects.toBeInstanceOf(SimulatedCrash);
  const files = readdirSync(disk.path('new/g'), { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const all = files.map(({ parentPath, name }) => join(parentPath, name));
  expect(all.filter((path) => !disk.left(path)?.equals(readFileSync(path)))).toEqual([]);
  expect(all.map((path) => path.slice(disk.path('new/g').length + 1))).toEqual(
    expect.arrayContaining(['config.toml', 'sites/c1.toml', 'state/state-id']),
  );
  expect(all.some((path) => readFileSync(path).includes(`${cluster}.2`))).toBe(true);
});
