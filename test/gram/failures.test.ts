import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { AuditableSite } from '../../src/site/audit.ts';
import { freshKey, shellJob, texts, Watch } from '../conformance/kit.ts';
import { missingPrograms, POLLING } from '../sites/gatekeeper.ts';
import { ended, waitUntil } from '../sites/ports.ts';
import { SLOW } from '../slow.ts';
import { delegate, type Grid, proxyFor, seconds, startGrid } from './kit.ts';

const MISSING = missingPrograms();
let grid: Grid;
beforeAll(async () => {
  if (MISSING.length === 0) grid = await startGrid(POLLING);
}, 60_000);
afterAll(() => grid?.stop(), 60_000);

const PATIENCE = 60_000;
const ledger = (key: AttemptKey) => join(grid.dir, `ledger.${key}`);
const starts = (key: AttemptKey) =>
  existsSync(ledger(key)) ? readFileSync(ledger(key), 'utf8').split('\n').length - 1 : 0;
/** Reports its start, waits for permission, and reports that it is done. */
const waiting = (key: AttemptKey) =>
  shellJob(key, `echo s >>'${ledger(key)}'; while ! [ -e '${grid.dir}/go.${key}' ]; do sleep 0.1; done; echo done`);
const leave = (key: AttemptKey) => writeFileSync(join(grid.dir, `go.${key}`), '');
const open = (state: string, more = {}) => grid.open({ state, askEveryMs: 1500, ...more });
const good = (outcomes: ReadonlyMap<AttemptKey, { ok: boolean }>) => [...outcomes.values()].every(({ ok }) => ok);

async function killJobManagers(): Promise<void> {
  for (const pid of grid.gate.jobManagers()) {
    process.kill(pid, 'SIGKILL');
    await waitUntil('the end of a job manager', () => ended(pid));
  }
}

/** The job comes to its end with what it wrote, started once, and GRAM forgets it. */
async function concludes(site: AuditableSite, key: AttemptKey, at = grid): Promise<void> {
  const watch = new Watch(site);
  expect(await watch.ended(key, PATIENCE)).toMatchObject({ how: { kind: 'exited', code: 0 } });
  const into = join(grid.dir, 'home', key);
  const outcome = (await site.fetch([{ key, outputs: 'new', stdout: true, stderr: true, into }])).get(key);
  expect(texts(outcome)).toEqual({ stdout: 'done\n', stderr: '' });
  const contact = (await site.audit()).records.find((record) => record.key === key)?.batchId ?? '';
  const ids = new URL(contact).pathname.split('/').filter((word) => word !== '');
  const left = () => at.gate.stateFiles().filter((file) => file.includes(ids.join('.')));
  expect(left()).not.toEqual([]);
  expect(good(await site.forget([key]))).toBe(true);
  expect(starts(key)).toBe(1);
  await expect.poll(left, { timeout: PATIENCE }).toEqual([]);
}

/** Asks again as a GridManager does, until it is so; a job that the site let go is asked for anew. */
async function insist(site: AuditableSite, key: AttemptKey): Promise<void> {
  await waitUntil(
    'the commit',
    async () => {
      try {
        return good(await site.prepare([waiting(key)])) && good(await site.commit([key]));
      } catch {
        return false;
      }
    },
    PATIENCE,
  );
}

describe.skipIf(MISSING.length > 0)('a GRAM site loses nothing and doubles nothing when', () => {
  it('the job manager is killed before the commit, and again while the job runs', async () => {
    const site = await open('killed');
    const key = freshKey();
    expect(good(await site.prepare([waiting(key)]))).toBe(true);
    await killJobManagers();
    // It would forget where the results go, so the GridManager requests it again.
    expect((await site.commit([key])).get(key)).toMatchObject({ ok: false, refusal: { kind: 'gone' } });
    expect(starts(key)).toBe(0);
    expect(good(await site.prepare([waiting(key)]))).toBe(true);
    expect(good(await site.commit([key]))).toBe(true);
    await waitUntil('the start', () => starts(key) === 1, PATIENCE);
    await killJobManagers();
    expect((await site.poll({ cursor: undefined, follow: [] })).reports).toMatchObject([{ key, is: 'running' }]);
    leave(key);
    await concludes(site, key);
  }, 150_000);

  it('the gatekeeper is killed before the commit, alone and with the job manager, and the job manager after it', async () => {
    const site = await open('gate');
    const [alone, both] = [freshKey(), freshKey()];
    expect(good(await site.prepare([waiting(alone)]))).toBe(true);
    await grid.gate.kill();
    // The job manager does not need it; a new job does.
    expect(good(await site.commit([alone]))).toBe(true);
    await expect(site.prepare([waiting(both)])).rejects.toMatchObject({ code: 'site-unreachable' });
    await grid.gate.start();
    expect(good(await site.prepare([waiting(both)]))).toBe(true);
    await grid.gate.kill();
    await killJobManagers();
    await expect(site.commit([both])).rejects.toMatchObject({ code: 'site-unreachable' });
    expect(starts(both)).toBe(0);
    await grid.gate.start();
    await insist(site, both);
    // Between the commit and the start: it stages its input.
    await killJobManagers();
    for (const key of [alone, both]) leave(key);
    for (const key of [alone, both]) await concludes(site, key);
  }, 250_000);

  it('we die after a commit that we did not note, and are away when the results are due', async () => {
    const before = await open('away');
    const key = freshKey();
    expect(good(await before.prepare([waiting(key)]))).toBe(true);
    expect(good(await before.commit([key]))).toBe(true);
    const record = join(grid.dir, 'away/jobs', key, 'record.json');
    await waitUntil('the start', () => starts(key) === 1, PATIENCE);
    await before.close();
    writeFileSync(record, readFileSync(record, 'utf8').replace('"phase":"committed"', '"phase":"committing"'));
    leave(key);
    // The job manager cannot deliver the results to anybody.
    await waitUntil('the stage-out', () => /msg="stage_out|job_status=128|STAGE_OUT/i.test(grid.gate.log()), PATIENCE);
    const renewals = () => grid.gate.log().split('event=gram.proxyrenew.start').length;
    const renewed = renewals();
    const after = await open('away');
    expect(good(await after.commit([key]))).toBe(true);
    await concludes(after, key);
    // The same proxy is not sent again to a running job.
    expect(renewals()).toBe(renewed);
  }, 150_000);

  it.runIf(SLOW)(
    'our port is taken when we come back',
    async () => {
      const before = await open('moved');
      const [told, untold] = [freshKey(), freshKey()];
      const jobs = [waiting(told), waiting(untold)];
      expect(good(await before.prepare(jobs))).toBe(true);
      expect(good(await before.commit([told, untold]))).toBe(true);
      await waitUntil('the starts', () => starts(told) === 1 && starts(untold) === 1, PATIENCE);
      await before.close();
      const place = JSON.parse(readFileSync(join(grid.dir, 'moved/gass.json'), 'utf8')) as { port: number };
      const squatter = await squat(place.port);
      const after = await open('moved');
      await after.poll({ cursor: undefined, follow: [] });
      const moved = JSON.parse(readFileSync(join(grid.dir, 'moved/gass.json'), 'utf8')) as { port: number };
      expect(moved.port).not.toBe(place.port);
      leave(told);
      const watch = new Watch(after);
      await watch.ended(told, PATIENCE);
      // The job manager of this one is restarted, and would lose what it was told.
      await killJobManagers();
      leave(untold);
      expect(await watch.ended(untold, 120_000)).toMatchObject({ how: { kind: 'exited', code: 0 } });
      expect(good(await after.forget([told]))).toBe(true);
      squatter.close();
      await concludes(after, untold);
    },
    250_000,
  );

  it('the proxy ends: the job manager that stopped is started again with a fresh one', async () => {
    // One job manager serves all of a user's jobs, with the proxy that lives longest, and stops ten minutes before its end.
    const own = await startGrid(POLLING);
    try {
      const site = await own.open({ askEveryMs: 1500, credential: await proxyFor(own.jane, { lifetime: 620 }) });
      const key = freshKey();
      expect(good(await site.prepare([waiting(key)]))).toBe(true);
      expect(good(await site.commit([key]))).toBe(true);
      await waitUntil('the start', () => starts(key) === 1, PATIENCE);
      await waitUntil('the job manager to stop', () => own.gate.jobManagers().length === 0, PATIENCE);
      await delegate(site, await proxyFor(own.jane));
      leave(key);
      await concludes(site, key, own);
    } finally {
      await own.stop();
    }
  }, 150_000);

  it('the proxy is renewed while the job runs: the job sees the fresh one', async () => {
    const site = await open('renewed', { credential: await proxyFor(grid.jane, { lifetime: 1200 }) });
    const key = freshKey();
    const end = join(grid.dir, `end.${key}`);
    const script = `openssl x509 -noout -enddate -in "$X509_USER_PROXY" >'${end}'; while ! [ -e '${grid.dir}/go.${key}' ]; do sleep 0.1; done; openssl x509 -noout -enddate -in "$X509_USER_PROXY"`;
    expect(good(await site.prepare([shellJob(key, script)]))).toBe(true);
    expect(good(await site.commit([key]))).toBe(true);
    await waitUntil('the start', () => existsSync(end) && readFileSync(end, 'utf8').includes('='), PATIENCE);
    await delegate(site, await proxyFor(grid.jane));
    leave(key);
    const watch = new Watch(site);
    await watch.ended(key, PATIENCE);
    const into = join(grid.dir, 'home', key);
    const came = texts((await site.fetch([{ key, outputs: [], stdout: true, stderr: true, into }])).get(key));
    const at = (line: string | undefined) => Date.parse((line ?? '').replace(/^notAfter=/, '')) / 1000;
    expect(at(readFileSync(end, 'utf8'))).toBeLessThan(seconds() + 1300);
    expect(at(came['stdout'])).toBeGreaterThan(seconds() + 3600);
    expect(good(await site.forget([key]))).toBe(true);
  }, 150_000);
});

/** Another server on our port. */
async function squat(port: number): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return server;
}
