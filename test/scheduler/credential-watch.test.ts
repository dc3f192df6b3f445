import { appendFileSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SiteBook } from '../../src/config/follow.ts';
import { loadPaths } from '../../src/config/paths.ts';
import { loadSettings } from '../../src/config/settings.ts';
import { loadSites } from '../../src/config/sites.ts';
import { saveSite } from '../../src/config/sites.ts';
import { type CredentialInventory, inventory } from '../../src/credentials/inventory/inventory.ts';
import type { JobId } from '../../src/job/ids.ts';
import { quoted, readNumber, readString } from '../../src/job/values.ts';
import type { Message } from '../../src/notify/messages.ts';
import type { JobRecord, Queue } from '../../src/queue/api.ts';
import { CredentialWatch } from '../../src/scheduler/credential-watch.ts';
import { startRedis, type TestRedis, until } from '../sites/redis.ts';

const home = mkdtempSync('/tmp/gcw-');
const paths = loadPaths({ GRYPHUS_HOME: home });
const key = join(home, 'daily key');
let redis: TestRedis;
let queue: Queue;
let cluster: number;
let told: Message[] = [];
const open: { watch: CredentialWatch; stop: AbortController }[] = [];

beforeAll(async () => {
  redis = await startRedis();
  queue = await redis.open();
  mkdirSync(join(home, 'credentials'), { recursive: true });
  describeKey('1000s');
  await saveSite(paths, 'c1', { url: 'ssh://c1.example', credential: 'daily' });
  await saveSite(paths, 'plain', { url: 'ssh://c2.example' });
}, 30_000);
afterEach(async () => {
  for (const { watch, stop } of open.splice(0)) {
    stop.abort();
    await watch.close();
  }
  told = [];
});
afterAll(async () => {
  await redis.stop();
  rmSync(home, { recursive: true, force: true });
});

function describeKey(lifetime: string): void {
  writeFileSync(join(home, 'credentials/daily.toml'), `kind = "ssh-key"\nfile = "${key}"\nlifetime = "${lifetime}"\n`);
}

/** The key was written this many seconds ago. */
function keyOfAge(seconds: number): void {
  writeFileSync(key, 'x\n', { mode: 0o600 });
  const at = Date.now() / 1000 - seconds;
  utimesSync(key, at, at);
}

async function submit(jobs: number, site = 'c1'): Promise<readonly JobId[]> {
  const procs = Array.from({ length: jobs }, () => ({ attrs: {} }));
  ({ cluster } = await queue.submit({ clusterAd: { Owner: '"jane"' }, procs, manager: 'jane+daily', site }));
  return procs.map((_, proc) => ({ cluster, proc }));
}

/** A watch that receives the queue's events, as in the Scheduler. */
async function watch(): Promise<void> {
  const settings = await loadSettings(paths);
  const one = new CredentialWatch({
    queue,
    paths,
    loadSites: () => loadSites(paths),
    settings,
    alarms: {
      raise: async (message) => {
        told.push(message);
      },
    },
    log: () => undefined,
  });
  const stop = new AbortController();
  open.push({ watch: one, stop });
  one.open();
  void (async () => {
    for await (const entry of queue.subscribe({ from: '0', signal: stop.signal })) await one.hear([entry]);
  })();
}

const jobs = (ids: readonly JobId[]): Promise<readonly JobRecord[]> => queue.get(ids);
const states = async (ids: readonly JobId[]) => (await jobs(ids)).map((job) => job.state).join(' ');

describe('the list of jobs and their credentials', () => {
  it('is made again only if the configuration has changed', async () => {
    keyOfAge(0);
    await submit(2);
    const book = new SiteBook(paths);
    const list = (known?: CredentialInventory) => inventory(queue, paths, () => book.sites(), known);
    const first = await list();
    expect(first.jobs).toHaveLength(2);
    expect(await list(first)).toBe(first);
    appendFileSync(join(paths.sitesDir, 'c1.toml'), '\n# changed\n');
    const again = await list(first);
    expect(again).not.toBe(first);
    expect(again.jobs).toEqual(first.jobs);
    describeKey('999s');
    expect(await list(again)).not.toBe(again);
    describeKey('1000s');
  });
});

describe('the watch in the Scheduler', () => {
  it('holds what waits, lets be what is at its site, releases its own when the key is fresh', async () => {
    keyOfAge(2000);
    const ids = await submit(4);
    const [waits, byUser, there, prepared] = ids as [JobId, JobId, JobId, JobId];
    await queue.transitionMany([
      { id: byUser, event: 'hold', set: { HoldReason: quoted('mine'), HoldReasonCode: '1', HoldReasonSubCode: '0' } },
      { id: there, event: 'take' },
      { id: there, event: 'prepared' },
      { id: there, event: 'committed' },
      { id: there, event: 'started' },
      { id: prepared, event: 'take' },
      { id: prepared, event: 'prepared' },
    ]);
    await watch();
    await until(async () => (await states([waits])) === 'held');
    expect(await states(ids)).toBe('held held running prepared');
    const [held] = await jobs([waits]);
    expect(readNumber(held?.attrs ?? new Map(), 'HoldReasonCode')).toBe(4);
    expect(readNumber(held?.attrs ?? new Map(), 'HoldReasonSubCode')).toBe(1);
    expect(readString(held?.attrs ?? new Map(), 'HoldReason')).toMatch(
      /^The SSH key 'daily' ended at .* released automatically/,
    );
    await until(() => told.length > 0);
    keyOfAge(0);
    await until(async () => (await states([waits])) === 'idle');
    expect(await states(ids)).toBe('idle held running prepared');
    await until(() => told.length === 2);
    expect(told.map((message) => message.subject.replace(/;.*/, ''))).toEqual([
      "[Gryphus] The SSH key 'daily' has ended",
      "[Gryphus] The SSH key 'daily' is fresh again",
    ]);
  });

  it('reports nothing twice, whichever process looks', async () => {
    keyOfAge(3000);
    const ids = await submit(2);
    await watch();
    await until(async () => (await states(ids)) === 'held held');
    await until(() => told.length === 1);
    await open[0]?.watch.close();
    await watch();
    await submit(1);
    await until(async () => (await states([{ cluster, proc: 0 }])) === 'held');
    expect(told).toHaveLength(1);
  });

  it('holds each job that comes later, and a job that the user releases again', async () => {
    keyOfAge(4000);
    await watch();
    const [id] = (await submit(1)) as [JobId];
    await until(async () => (await states([id])) === 'held');
    await queue.transition({ id, event: 'release', set: { HoldReasonCode: null, HoldReasonSubCode: null } });
    await until(async () => readNumber((await jobs([id]))[0]?.attrs ?? new Map(), 'NumHolds') === 2);
    expect(await states([id])).toBe('held');
  });

  it('holds for a credential without a description, not for a site that needs none', async () => {
    keyOfAge(0);
    await saveSite(paths, 'c3', { url: 'ssh://c3.example', credential: 'nowhere' });
    const lost = await submit(1, 'c3');
    const free = await submit(1, 'plain');
    await watch();
    await until(async () => (await states(lost)) === 'held');
    expect(readNumber((await jobs(lost))[0]?.attrs ?? new Map(), 'HoldReasonSubCode')).toBe(2);
    expect(await states(free)).toBe('idle');
    writeFileSync(join(home, 'credentials/nowhere.toml'), `kind = "ssh-key"\nfile = "${key}"\n`);
    await queue.notice({ about: 'credential-renewed', message: 'said', info: { by: 'user' } });
    await until(async () => (await states(lost)) === 'idle');
  });

  it('holds when an allocation ends', async () => {
    await saveSite(paths, 'c4', { url: 'ssh://c4.example', allocation_end: '2020-01-01' });
    const ids = await submit(1, 'c4');
    await watch();
    await until(async () => (await states(ids)) === 'held');
    await saveSite(paths, 'c4', { url: 'ssh://c4.example', allocation_end: '2099-01-01' });
    await queue.notice({ about: 'credential-renewed', message: 'said', info: { by: 'user' } });
    await until(async () => (await states(ids)) === 'idle');
  });
});
