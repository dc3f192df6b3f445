import dns from 'node:dns';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parseGramContact } from '../../src/config/gram-resource.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { freshKey, shellJob, Watch } from '../conformance/kit.ts';
import { type Cable, layCable } from '../sites/cable.ts';
import { missingPrograms, POLLING } from '../sites/gatekeeper.ts';
import { waitUntil } from '../sites/ports.ts';
import { type Grid, startGrid } from './kit.ts';

const cable: Cable | undefined = missingPrograms().length === 0 ? layCable() : undefined;
const NAME = 'ce.gryphus.test';
const PATIENCE = 60_000;
let grid: Grid;
let scratch: string | undefined;

beforeAll(async () => {
  if (cable === undefined) return;
  scratch = mkdtempSync(join(tmpdir(), 'gcut-'));
  const hosts = join(scratch, 'hosts');
  writeFileSync(hosts, `127.0.0.1 localhost\n${cable.there} ${NAME}\n`);
  grid = await startGrid({ ...POLLING, cable, name: NAME, mounts: { '/etc/hosts': hosts } });
  // Has the effect of a line in our own hosts file.
  const lookup = dns.lookup.bind(dns) as (...words: unknown[]) => void;
  vi.spyOn(dns, 'lookup').mockImplementation((name: string, ...more: unknown[]) =>
    lookup(name === NAME ? cable.there : name, ...more),
  );
}, 60_000);
afterAll(async () => {
  await grid?.stop();
  cable?.stop();
  vi.restoreAllMocks();
  if (scratch !== undefined) rmSync(scratch, { recursive: true });
}, 60_000);

const ledger = (key: AttemptKey) => join(grid.dir, `ledger.${key}`);
const starts = (key: AttemptKey) =>
  existsSync(ledger(key)) ? readFileSync(ledger(key), 'utf8').split('\n').length - 1 : 0;
/** The first part of its results has arrived. */
const partsOf = (key: AttemptKey) =>
  readdirSync(join(grid.dir, 'state/jobs', key)).filter((name) => name.startsWith('out.'));

describe.skipIf(cable === undefined)('the network to a GRAM service is cut', () => {
  it('before the commit, while the job runs, and while its results are on their way: it ran once, and all came', async () => {
    if (cable === undefined) return;
    // The host's certificate names another host than the one at this end of the cable.
    const target = parseGramContact(`${grid.gate.address}/jobmanager-fork:${grid.gate.host.dn}`);
    const site = await grid.open({ target, askEveryMs: 1500, timeoutMs: 3000 });
    const key = freshKey();
    const go = join(grid.dir, `go.${key}`);
    // Its results are longer than what fits on the wire.
    const script = `echo s >>'${ledger(key)}'; until [ -e '${go}' ]; do sleep 0.1; done; head -c 30000000 /dev/zero >big; echo done`;
    const job = shellJob(key, script, { outputs: ['big'] });
    expect((await site.prepare([job])).get(key)).toEqual({ ok: true });
    cable.cut();
    const silent = { code: expect.stringMatching(/^(timeout|site-unreachable)$/), retry: 'later' };
    await expect(site.commit([key])).rejects.toMatchObject(silent);
    await expect(site.prepare([shellJob(freshKey(), 'exit 0')])).rejects.toMatchObject(silent);
    cable.remedy();
    await waitUntil(
      'the commit',
      async () => (await site.commit([key]).catch(() => undefined))?.get(key)?.ok === true,
      PATIENCE,
    );
    await waitUntil('the start', () => starts(key) === 1, PATIENCE);
    cable.cut();
    await expect(site.poll({ cursor: undefined, follow: [] })).rejects.toMatchObject(silent);
    cable.remedy();
    const watch = new Watch(site);
    await watch.until(key, ({ is }) => is === 'running', PATIENCE);
    writeFileSync(go, '');
    await waitUntil('results on their way', () => partsOf(key).length > 0, PATIENCE);
    cable.cut();
    await delay(1000);
    cable.remedy();
    expect(await watch.ended(key, 120_000)).toMatchObject({ how: { kind: 'exited', code: 0 } });
    const into = join(grid.dir, 'home', key);
    const outcome = (await site.fetch([{ key, outputs: ['big'], stdout: true, stderr: true, into }])).get(key);
    expect(outcome).toMatchObject({ ok: true });
    expect(outcome?.files?.map(({ bytes }) => bytes).sort((a, b) => a - b)).toEqual([0, 5, 30_000_000]);
    expect((await site.forget([key])).get(key)).toEqual({ ok: true });
    expect(starts(key)).toBe(1);
    await expect
      .poll(() => grid.gate.stateFiles().filter((file) => /job\.\d/.test(file)), { timeout: 30_000 })
      .toEqual([]);
  }, 300_000);
});
