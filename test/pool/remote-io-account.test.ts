import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Accounts } from '../../src/pool/worker/accounts.ts';
import { AttemptDir } from '../../src/pool/worker/attempt-dir.ts';
import { ChirpProxies } from '../../src/pool/worker/chirp/chirp-proxies.ts';
import { ExecuteDir } from '../../src/pool/worker/execute-dir.ts';
import { JobUsers } from '../../src/pool/worker/job-users.ts';
import { Run } from '../../src/pool/worker/run.ts';
import { BlobCache } from '../../src/pool/worker/sandbox.ts';
import { equip } from '../../src/pool/worker/stage.ts';
import { SIZE, SPEC } from './owner/model-station.ts';

const isRoot = process.getuid?.() === 0;
const USER = { name: 'other', uid: 54_322, gid: 54_322, groups: [], home: '/nonexistent', alone: false };

let dir = '';
let proxies: ChirpProxies;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'remote-account-'));
  proxies = new ChirpProxies(() => Promise.resolve({ result: 0 }));
  await proxies.listen();
});
afterEach(() => {
  proxies.close();
  rmSync(dir, { recursive: true, force: true });
});

function runIn(user: typeof USER): Run {
  const spec = { ...SPEC, ioProxy: true, remoteIo: true } as const;
  const record = { key: 'a.1.0.1', claim: 'c', size: SIZE, spec, lease: 60, user } as const;
  const place = new AttemptDir(dir, record.key);
  place.create(record);
  return new Run(record, place);
}

it.runIf(isRoot)('a job’s account cannot lead what the worker puts into its sandbox somewhere else', () => {
  const victim = join(dir, 'victim');
  mkdirSync(victim);
  /** Another process of the account does what it can as soon as the sandbox belongs to the account. */
  class Raced extends Accounts {
    override ready(...[run, placed]: Parameters<Accounts['ready']>): ReturnType<Accounts['ready']> {
      const made = super.ready(run, placed);
      const at = join(run.dir.work, '.remote-io');
      if (!existsSync(at)) symlinkSync(victim, at);
      return made;
    }
  }
  const users = new JobUsers({ runAs: () => 'owner', isRoot: true, self: () => 'root', path: process.env['PATH'] });
  const accounts = new Raced(users, new ExecuteDir({ workerDir: dir, instance: 'w' }));
  const remoteIo = { program: '/bin/true', ad: {} };
  const run = runIn(USER);
  const { command } = equip(run, new BlobCache(join(dir, 'cache')), {
    machine: { ad: {} },
    accounts,
    chirp: proxies,
    remoteIo,
  });
  expect([readdirSync(victim), lstatSync(victim).uid]).toEqual([[], 0]);
  const [program = ''] = command ?? [];
  expect(lstatSync(program)).toMatchObject({
    uid: USER.uid,
    mode: expect.toSatisfy((mode: number) => (mode & 0o111) !== 0),
  });
  expect(lstatSync(join(program, '..'))).toMatchObject({ uid: USER.uid });
});
