import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readPid } from '../../src/util/pid-file.ts';
import { makeKey } from '../sites/ssh-keys.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { TestAgent, until } from './agent.ts';
import { kill, processesOf } from './kill.ts';

/** What a user is told after a mistake: one error with its remedy, an exit status, nothing half done. */
describe('at the command line', () => {
  const agent = new TestAgent();
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await startSshd();
    agent.config('[gridmanager]\nretry_min = "1s"\nretry_max = "1s"\n');
    await agent.ok('up');
  });
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
  });

  /** A site given as a Host of the user's ssh configuration. */
  function host(name: string, lines: readonly string[]): void {
    const dir = join(agent.dir, 'home/.ssh');
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const all = ['HostName 127.0.0.1', `Port ${sshd.port}`, `User ${sshd.user}`, ...lines];
    appendFileSync(join(dir, 'config'), `Host ${name}\n${all.map((line) => `  ${line}\n`).join('')}`);
    agent.site(name, { url: name, batch: 'fork' });
  }
  const check = async (name: string) => {
    const { code, stdout } = await agent.run(['site', 'test', name]);
    return {
      code,
      said: stdout
        .split('\n')
        .filter((line) => /^(✗| )/.test(line))
        .join('\n'),
    };
  };

  it.each([
    [
      'an error on line 7',
      'executable = /bin/true\n\n\n\n\n\nrequest_cpus = many of them (\nqueue\n',
      65,
      /^gryphus: on Line 7 of <stdin>: .*\n( {2}→ .*\n)+$/,
    ],
    [
      'an unknown site',
      'executable = /bin/true\nuniverse = grid\ngrid_resource = batch slurm nosuch\nqueue\n',
      68,
      /^gryphus: There is no site 'nosuch'\.\n {2}→ gryphus site add nosuch ssh:/,
    ],
  ])('%s', async (_what, text, exit, words) => {
    const { code, stdout, stderr } = await agent.run(['submit', '-'], { input: text });
    expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
    expect(stderr).toMatch(words);
    expect(await agent.ok('q', '--allusers', '--totals')).toContain('Total for all users: 0 jobs;');
  });

  it('a wrong key, one that is locked or missing, an agent’s, an unknown host', async () => {
    const known = `UserKnownHostsFile ${sshd.knownHostsFile}`;
    const only = 'IdentitiesOnly yes';
    const wrong = makeKey(agent.dir, 'wrong');
    host('wrong', [known, only, `IdentityFile ${wrong}`]);
    expect(await check('wrong')).toMatchObject({
      code: 1,
      said: expect.stringContaining(`it accepted none of ${wrong}`),
    });

    const locked = makeKey(agent.dir, 'locked', { passphrase: 'open sesame' });
    appendFileSync(join(sshd.configDir, 'authorized_keys'), readFileSync(`${locked}.pub`));
    host('locked', [known, only, `IdentityFile ${locked}`]);
    const { code, said } = await check('locked');
    expect(code).toBe(1);
    expect(said).toContain(locked);
    expect(said).toMatch(/passphrase/);

    host('missing', [known, only, `IdentityFile ${agent.dir}/nokey`]);
    expect((await check('missing')).said).toMatch(/nokey: no such file/);

    host('stranger', [`UserKnownHostsFile ${agent.dir}/none`, only, `IdentityFile ${sshd.keyFile}`]);
    expect((await check('stranger')).said).toMatch(
      /is not known; it presented ssh-ed25519 SHA256:.*\n.*log in once by hand/,
    );

    const socket = join(agent.dir, 'agent.sock');
    const pid = Number(
      /SSH_AGENT_PID=(\d+)/.exec(execFileSync('ssh-agent', ['-a', socket], { encoding: 'utf8' }))?.[1],
    );
    try {
      const env = { ...process.env, SSH_AUTH_SOCK: socket };
      execFileSync('ssh-add', [sshd.keyFile], { env, stdio: 'ignore' });
      host('byagent', [known, `IdentityAgent ${socket}`, `IdentityFile ${agent.dir}/nokey`]);
      expect(await check('byagent')).toEqual({ code: 0, said: '' });
    } finally {
      if (pid > 1) kill(pid);
    }
  }, 90_000);

  it('a changed host key: the job waits, q and why say so, and what they name fixes it', async () => {
    host('changed', [`UserKnownHostsFile ${sshd.knownHostsFile}`, `IdentityFile ${sshd.keyFile}`]);
    await sshd.restart({ newHostKey: true });
    const cluster = String(
      await agent.submit(
        'universe = grid\ngrid_resource = batch fork changed\nexecutable = /bin/true\ntransfer_executable = false\nqueue\n',
      ),
    );
    const why = await until('the refusal', async () => {
      const said = await agent.ok('why', cluster);
      return said.includes('has changed') ? said : undefined;
    });
    expect(why).toContain('It waits for site changed, which cannot be used now.');
    expect(await agent.ok('q')).toMatch(
      /-- Site changed cannot be used: The host key .* has changed: .*; 1 job waits for it\./,
    );
    const { said } = await check('changed');
    const remedy = /ssh-keygen -f \S+ -R \S+/.exec(said)?.[0] ?? 'false';
    execFileSync('/bin/sh', ['-c', remedy], { stdio: 'ignore' });
    execFileSync('/bin/sh', ['-c', `ssh-keyscan -p ${sshd.port} 127.0.0.1 >>'${sshd.knownHostsFile}' 2>/dev/null`]);
    expect((await check('changed')).code).toBe(0);
    await agent.ok('rm', cluster);
  }, 90_000);

  it('a dead Redis, a stale socket, a state of a newer version', async () => {
    const redis = readPid(join(agent.home, 'state/redis/redis.pid'));
    if (redis === undefined) throw new Error('Redis has no pid');
    kill(redis);
    await agent.ok('q');
    await agent.ok('down');
    const socket = join(agent.home, 'state/run/redis.sock');
    expect(existsSync(socket)).toBe(false);
    writeFileSync(socket, '');
    await agent.ok('q');

    const raw = new Redis(socket);
    await raw.hset('gryphus:meta', 'version', '99');
    raw.disconnect();
    const newer = await agent.run(['q']);
    expect(newer).toMatchObject({ code: 78, stdout: '' });
    expect(newer.stderr).toMatch(/newer Gryphus \(state version 99.*\n {2}→ Use that newer Gryphus, or another state/);
    // Its daemons can still be stopped.
    await agent.ok('down');
    expect(processesOf('scheduler/main.js', agent)).toEqual([]);
  }, 90_000);
});
