import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GassServer } from '../../src/gram/gass-server.ts';
import { blob, freshKey, shellJob, texts, Watch } from '../conformance/kit.ts';
import { missingPrograms } from '../sites/gatekeeper.ts';
import { type Grid, startGrid } from './kit.ts';

const MISSING = missingPrograms();
let grid: Grid;

beforeAll(async () => {
  if (MISSING.length === 0) grid = await startGrid();
}, 60_000);
afterAll(() => grid?.stop(), 60_000);

describe.skipIf(MISSING.length > 0)('an input that jobs at a GRAM service share', () => {
  it('crosses once while one of them is there, and each has it for itself', async () => {
    const reads: string[] = [];
    const listen = GassServer.listen.bind(GassServer);
    GassServer.listen = (options) =>
      listen({
        ...options,
        gassHandler: { ...options.gassHandler, read: (path) => (reads.push(path), options.gassHandler.read(path)) },
      });
    const site = await grid.open();
    const big = blob(grid.dir, 'big', Buffer.alloc(3_000_000, 'gryphus '));
    const keys = [freshKey(), freshKey(), freshKey()];
    const inputs = [
      { kind: 'file' as const, name: 'b ig', file: { kind: 'blob' as const, blob: big }, executable: false },
    ];
    // Each corrupts its own copy.
    const script = `cksum <'b ig'; echo spoilt >>'b ig'; cat 'b ig' >bigger; until [ -e '${grid.dir}/go' ]; do sleep 0.1; done`;
    for (const key of keys) {
      expect((await site.prepare([shellJob(key, script, { inputs })])).get(key)).toEqual({ ok: true });
      expect((await site.commit([key])).get(key)).toMatchObject({ ok: true });
    }
    const watch = new Watch(site);
    for (const key of keys) await watch.until(key, ({ is }) => is === 'running', 60_000);
    blob(grid.dir, 'go', '');
    const sums = new Set<string | undefined>();
    for (const key of keys) {
      expect(await watch.ended(key, 60_000)).toMatchObject({ how: { kind: 'exited', code: 0 } });
      const into = join(grid.dir, 'home', key);
      const request = { key, outputs: ['bigger'], stdout: true, stderr: true, into };
      const outcome = (await site.fetch([request])).get(key);
      sums.add(texts(outcome)['stdout']);
      const came = outcome?.files?.find(({ name }) => name === 'bigger')?.path ?? '';
      expect(readFileSync(came).equals(Buffer.concat([readFileSync(big.path), Buffer.from('spoilt\n')]))).toBe(true);
    }
    expect(sums.size).toBe(1);
    expect(reads.filter((path) => path.startsWith('/shared/'))).toEqual([`/shared/${big.sha256}`]);
    const scratch = () => readdirSync(homedir()).filter((name) => name.startsWith('gram_scratch_'));
    expect(scratch().some((name) => existsSync(join(homedir(), name, big.sha256)))).toBe(true);
    expect([...(await site.forget(keys)).values()]).toEqual(keys.map(() => ({ ok: true })));
    const linked = () => scratch().filter((name) => readdirSync(join(homedir(), name)).includes(big.sha256));
    await expect.poll(linked, { timeout: 30_000 }).toEqual([]);
  }, 120_000);
});
