import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ordinaryUser, runsAs } from '../sites/ordinary-user.ts';
import { waitUntil } from '../sites/ports.ts';

const MODULE = join(import.meta.dirname, '../..', process.env['GRYPHUS_DIST'] ?? 'dist', 'pool/worker/podman-pause.js');
const user = ordinaryUser();
const dir = mkdtempSync('/tmp/gry-pause-');
const there = spawnSync('podman', ['--version']).status === 0;

/** Runs a command as that user, without root privileges. */
function asUser(env: Record<string, string>, ...command: readonly string[]): void {
  const [program, ...words] = runsAs(user);
  const all = { ...process.env, ...env, HOME: dir, XDG_RUNTIME_DIR: dir };
  execFileSync(program, [...words, ...command], { cwd: dir, env: all, stdio: 'pipe' });
}

/** Processes that podman keeps for a name space of this directory's store. */
function pauses(): number[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
      const own = readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`HOME=${dir}`);
      return /^\d+$/.test(pid) && command === 'catatonit\0-P\0' && own ? [Number(pid)] : [];
    } catch {
      return [];
    }
  });
}

const ends = (worker: string) =>
  asUser(
    {},
    process.execPath,
    '-e',
    `import(${JSON.stringify(MODULE)}).then((m) => m.endPause(process.argv[1]))`,
    worker,
  );

describe.skipIf(!there)('the process that podman leaves behind', () => {
  beforeAll(() => {
    chmodSync(dir, 0o700);
    if (user) chownSync(dir, user.uid, user.gid);
  });
  afterAll(() => {
    for (const pid of pauses()) process.kill(pid, 'SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });

  it('ends with the worker whose podman has left it, and no other does', async () => {
    asUser({ GRYPHUS_CONTAINERS_OF: '/the worker' }, 'podman', 'info');
    expect(pauses()).toHaveLength(1);
    ends('/another worker');
    expect(pauses()).toHaveLength(1);
    ends('/the worker');
    await waitUntil('it to end', () => pauses().length === 0);
    // The user's own.
    asUser({}, 'podman', 'info');
    ends('/the worker');
    expect(pauses()).toHaveLength(1);
  }, 60_000);
});
