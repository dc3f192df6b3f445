import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { CLI, TestAgent, until } from './agent.ts';
import { daemons } from './everything.ts';
import { kill, processes } from './kill.ts';

const SYSTEMD = '/usr/lib/systemd/systemd';
/** It refuses to run where the system was not started by systemd, so it gets a `/run` that says so. */
const START = `mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/user/0 && chmod 700 /run/user/0 && exec ${SYSTEMD} --user`;
/** Of a user manager, not of the user's shell. */
const BARE = { PATH: '/usr/bin:/bin', XDG_RUNTIME_DIR: '/run/user/0', SYSTEMD_LOG_TARGET: 'null' };
const able =
  process.getuid?.() === 0 &&
  spawnSync('unshare', ['--mount', 'test', '-x', SYSTEMD], { stdio: 'ignore' }).status === 0;

describe.skipIf(!SLOW || !able)('the user unit', () => {
  let agent: TestAgent;
  let systemd: ChildProcess | undefined;
  beforeEach(() => {
    agent = new TestAgent();
    // The directories that the user's shell names, with blanks and what a unit would expand.
    agent.env['GRYPHUS_HOME'] = undefined;
    for (const [name, dir] of [
      ['XDG_CONFIG_HOME', 'my 100% $config'],
      ['XDG_STATE_HOME', 'my "state"'],
    ] as const) {
      agent.env[name] = join(agent.dir, dir);
      mkdirSync(join(agent.dir, dir), { mode: 0o700 });
    }
    renameSync(agent.home, join(agent.dir, 'my 100% $config/gryphus'));
  });
  afterEach(async () => {
    systemd?.kill('SIGKILL');
    await agent.end();
  });

  const boot = () => {
    const env = { ...BARE, HOME: agent.env['HOME'] };
    systemd = spawn('unshare', ['--mount', 'sh', '-c', START], { env, stdio: 'ignore' });
  };
  const systemctl = (...words: string[]) =>
    spawnSync('nsenter', ['-t', String(systemd?.pid), '-m', 'systemctl', '--user', ...words], {
      env: { ...BARE, HOME: agent.env['HOME'] },
      encoding: 'utf8',
    });
  const running = async () => (await agent.run(['status'])).code === 0 || undefined;
  const active = () => systemctl('is-active', 'gryphus').stdout.trim();

  it('starts the agent of the shell in which it was made, again after a reboot, and again when its home comes late', async () => {
    const cluster = await agent.submit('executable = /bin/true\ntransfer_executable = false\nhold = true\nqueue\n');
    await agent.ok('down');
    const units = join(String(agent.env['HOME']), '.config/systemd/user');
    mkdirSync(units, { recursive: true });
    const unit = join(units, 'gryphus.service');
    writeFileSync(unit, (await agent.ok('up', '--systemd')).replace('RestartSec=30', 'RestartSec=1'));
    const verified = spawnSync('systemd-analyze', ['--user', 'verify', unit], {
      encoding: 'utf8',
      env: { ...process.env, ...BARE },
    });
    expect(verified.stderr).not.toContain('gryphus.service');

    boot();
    await until('systemd', () => systemctl('is-system-running').stdout.trim() === 'running' || undefined);
    expect(systemctl('enable', '--now', 'gryphus').stderr).not.toContain('Failed');
    await until('the agent', running);
    expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 5 });

    const doctor = spawnSync('nsenter', ['-t', String(systemd?.pid), '-m', process.execPath, CLI, 'doctor', '--json'], {
      env: agent.env,
      cwd: agent.work,
      encoding: 'utf8',
    });
    // No logind runs here: nothing lingers.
    expect(doctor.stdout).toContain('loginctl enable-linger');

    systemd?.kill('SIGKILL');
    for (let left = processes(agent); left.length > 0; left = processes(agent)) for (const { pid } of left) kill(pid);
    const state = join(String(agent.env['XDG_STATE_HOME']), 'gryphus');
    renameSync(state, `${state}.away`);
    writeFileSync(state, 'not mounted yet');
    boot();
    await until('a failed start', () => active() === 'activating' || active() === 'failed' || undefined);
    renameSync(`${state}.away`, `${state}.back`);
    renameSync(state, `${state}.away`);
    renameSync(`${state}.back`, state);
    await until('the agent', running);
    expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 5 });
    await until('the unit', () => active() === 'active' || undefined);

    expect(systemctl('stop', 'gryphus').status).toBe(0);
    await until('its end', () => daemons(agent).length === 0 || undefined);
  }, 300_000);
});
