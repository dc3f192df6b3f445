import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { accountOf } from '../../src/pool/host/accounts.ts';
import { AttemptDir } from '../../src/pool/worker/attempt-dir.ts';
import { JobUsers } from '../../src/pool/worker/job-users.ts';
import { Strangers } from '../../src/pool/worker/strangers.ts';

const KEY: AttemptKey = 'agent.1.0.1';
const isRoot = process.getuid?.() === 0;

describe.runIf(isRoot)('a job of another pool, on a machine whose worker is root', () => {
  let dir = '';
  let home = '';

  beforeAll(() => {
    dir = mkdtempSync('/var/tmp/stranger-');
    chmodSync(dir, 0o755);
    home = join(dir, 'home');
    mkdirSync(home);
    writeFileSync(join(home, 'secret'), 'mine', { mode: 0o644 });
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  it('sees no process but its own, no file of the owner, no temporary file and no network', () => {
    const users = new JobUsers({ runAs: () => 'nobody', isRoot, self: 'root', path: process.env['PATH'] });
    const strangers = new Strangers({
      isRoot,
      uid: 0,
      userName: 'root',
      path: process.env['PATH'],
      hidden: [home],
      account: (runAs, used) => users.forStranger(runAs, used),
      openExecute: () => undefined,
    });
    expect(strangers.ad()['GryphusLendsAs']).toContain('nobody');
    const choice = strangers.choose('nobody', false, new Set());
    const { user } = 'user' in choice ? choice : {};
    if (!user) throw new Error(JSON.stringify(choice));
    const attempt = new AttemptDir(dir, KEY);
    mkdirSync(attempt.work, { recursive: true });
    chmodSync(attempt.path, 0o711);
    strangers.give(attempt, user, (path) => chownSync(path, user.uid, user.gid));
    const lines = "ls -d /proc/[0-9]* | tr -d -c '\\n' | wc -l";
    const script = `id -u; ${lines}; ls ${home} /tmp | grep -v :; tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " "; pwd`;
    const [program, ...words] = [...strangers.command(user, attempt), '/bin/sh', '-c', script];
    const { stdout, stderr, status } = spawnSync(program, words, { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const [uid, processes, ...rest] = stdout.split('\n').filter((line) => line !== '');
    expect(uid).toBe(String(accountOf('nobody')?.uid));
    // The shell, ls, tr and wc: processes of the machine, such as this one, are not among them.
    expect(Number(processes)).toBeLessThanOrEqual(4);
    expect(rest.filter((line) => line !== 'lo')).toEqual([attempt.work]);
  });
});
