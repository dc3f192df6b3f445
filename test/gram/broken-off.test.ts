import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { GassServer, type Readable } from '../../src/gram/gass-server.ts';
import { jobScript } from '../../src/gram/package.ts';
import type { AuditableSite } from '../../src/site/audit.ts';
import { blob, freshKey, run, shellJob, texts, Watch } from '../conformance/kit.ts';
import { missingPrograms } from '../sites/gatekeeper.ts';
import { SLOW, some } from '../slow.ts';
import { type Grid, startGrid } from './kit.ts';

const MISSING = missingPrograms();
const listen = GassServer.listen.bind(GassServer);
let grid: Grid;
let site: AuditableSite;
/** What breaks off, after how many bytes, and how often still. */
let cut: { path: RegExp; after: number; times: number } | undefined;

beforeAll(async () => {
  if (MISSING.length > 0) return;
  GassServer.listen = (options) =>
    listen({
      ...options,
      gassHandler: { ...options.gassHandler, read: async (path) => broken(path, await options.gassHandler.read(path)) },
    });
  grid = await startGrid();
  site = await grid.open({ askEveryMs: 2000 });
}, 60_000);
afterEach(() => {
  cut = undefined;
});
afterAll(async () => {
  GassServer.listen = listen;
  await grid?.stop();
}, 60_000);

/** As if we died while sending it. */
function broken(path: string, found: Readable | undefined): Readable | undefined {
  if (found === undefined || cut === undefined || cut.times === 0 || !cut.path.test(path)) return found;
  cut.times -= 1;
  const { after } = cut;
  return {
    bytes: found.bytes,
    async *stream() {
      let left = after;
      for await (const chunk of found.stream()) {
        yield chunk.subarray(0, left);
        left -= chunk.length;
        if (left <= 0) break;
      }
      // Everything that was written must arrive.
      await new Promise((resolve) => setTimeout(resolve, 200));
      throw new Error('we died');
    },
  };
}

describe.skipIf(MISSING.length > 0)('what broke off on its way to a GRAM service', () => {
  const script = jobScript().length;
  const CASES = [
    ['the program, in its first lines', /\/job$/, 1000, 1],
    ['an input that jobs share', /^\/+shared\//, 100_000, 1],
    ['the program, near its end', /\/job$/, script - 20, 1],
    ['the package, behind its first file', /\/job$/, script + 512 + wrapperBlocks(), 1],
    ['the program, where its package begins', /\/job$/, script, 1],
    ['the package, in the middle of a file', /\/job$/, script + 4000, 2],
  ] as const;
  it.each(some(CASES, 3))('%s, is not begun with, and goes again', async (_, path, after, times) => {
    cut = { path, after, times };
    const key = freshKey();
    const ledger = join(grid.dir, `ledger.${key}`);
    const data = blob(grid.dir, `data.${key}`, Buffer.alloc(300_000, key));
    const file = { kind: 'blob', blob: data } as const;
    const job = shellJob(key, `echo s >>'${ledger}'; wc -c <data`, {
      inputs: [{ kind: 'file', name: 'data', file, executable: false }],
    });
    await run(site, [job]);
    expect(await new Watch(site).ended(key, 90_000, job)).toMatchObject({ how: { kind: 'exited', code: 0 } });
    const into = join(grid.dir, 'home', key);
    const outcome = (await site.fetch([{ key, outputs: [], stdout: true, stderr: true, into }])).get(key);
    expect(texts(outcome)['stdout']).toMatch(/^ *300000\n$/);
    expect(existsSync(ledger) && readFileSync(ledger, 'utf8')).toBe('s\n');
    expect(cut?.times).toBe(0);
    expect((await site.forget([key])).get(key)).toEqual({ ok: true });
  });

  it.runIf(SLOW)('again and again is said of the job', async () => {
    cut = { path: /\/job$/, after: 1000, times: 10 };
    const key = freshKey();
    const job = shellJob(key, 'exit 0');
    await run(site, [job]);
    expect(await new Watch(site).ended(key, 90_000, job)).toMatchObject({
      how: { kind: 'by-site', cause: 'cannot-start', message: 'gryphus: the program did not arrive complete' },
    });
    expect(cut.times).toBe(6);
    expect((await site.forget([key])).get(key)).toEqual({ ok: true });
  });
});

/** The wrapper in its archive, without its header. */
function wrapperBlocks(): number {
  const bytes = readFileSync(new URL('../../src/jobmanager/wrapper.sh', import.meta.url)).length;
  return Math.ceil(bytes / 512) * 512;
}
