import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blob, freshKey, spec, texts, Watch } from '../conformance/kit.ts';
import { missingPrograms } from '../sites/gatekeeper.ts';
import { type Grid, startGrid } from './kit.ts';

const MISSING = missingPrograms();
let grid: Grid;

beforeAll(async () => {
  if (MISSING.length === 0) grid = await startGrid();
}, 60_000);
afterAll(() => grid?.stop(), 60_000);

/** What GRAM keeps of a job in the user's home at the site, and of its state. */
const leftOf = (contact: string): string[] => {
  const id = new URL(contact).pathname
    .split('/')
    .filter((word) => word !== '')
    .join('.');
  const dir = join(homedir(), '.globus/job/localhost');
  return [...(existsSync(dir) ? readdirSync(dir) : []), ...grid.gate.stateFiles()].filter((name) => name.includes(id));
};

describe.skipIf(MISSING.length > 0)('a GRAM service as a site', () => {
  it('runs a job from its files to its results, and leaves nothing there', async () => {
    const site = await grid.open();
    const watch = new Watch(site);
    const key = freshKey();
    const program = blob(
      grid.dir,
      'program',
      `#!/bin/sh\ncat; cat 'in put'; echo "$1" >out; echo bad >&2; mkdir d; echo x >d/deep; exit 3\n`,
    );
    const job = spec(key, {
      executable: { kind: 'blob', blob: program },
      args: ['one two'],
      stdin: { kind: 'blob', blob: blob(grid.dir, 'stdin', 'from stdin\n') },
      inputs: [
        {
          kind: 'file',
          name: 'in put',
          file: { kind: 'blob', blob: blob(grid.dir, 'data', 'from data\n') },
          executable: false,
        },
        { kind: 'directory', name: 'empty' },
      ],
      outputs: ['out', 'd', 'no such'],
    });
    expect([...(await site.prepare([job]))]).toEqual([[key, { ok: true }]]);
    expect([...(await site.prepare([job]))]).toEqual([[key, { ok: true }]]);
    expect([...(await site.commit([key])).values()]).toMatchObject([{ ok: true }]);
    expect(await watch.ended(key, 90_000)).toMatchObject({ how: { kind: 'exited', code: 3 }, stdoutBytes: 21 });
    const into = join(grid.dir, 'home', key);
    const outcome = (
      await site.fetch([{ key, outputs: ['out', 'd', 'no such'], stdout: true, stderr: true, into }])
    ).get(key);
    expect(outcome).toMatchObject({ ok: false, missing: ['no such'] });
    expect(texts(outcome)).toEqual({
      'd/deep': 'x\n',
      out: 'one two\n',
      stdout: 'from stdin\nfrom data\n',
      stderr: 'bad\n',
    });
    const contact = (await site.audit()).records[0]?.batchId ?? '';
    expect(leftOf(contact)).not.toEqual([]);
    expect([...(await site.forget([key]))]).toEqual([[key, { ok: true }]]);
    expect((await site.audit()).records).toEqual([]);
    await expect.poll(() => leftOf(contact), { timeout: 30_000 }).toEqual([]);
  }, 150_000);
});
