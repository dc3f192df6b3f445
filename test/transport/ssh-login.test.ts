import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Transport } from '../../src/transport/contract.ts';
import { openTransport, type TransportOptions } from '../../src/transport/open-transport.ts';
import type { Prompt, PromptRequest } from '../../src/transport/prompt.ts';
import { makeKey, publicKeyOf, signKey } from '../sites/ssh-keys.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';

const me = userInfo().username;
let dir: string;
let sshd: Sshd;
let userCa: string;
let hostCa: string;
const opened: Transport[] = [];

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'gsl-'));
  userCa = makeKey(dir, 'user_ca');
  hostCa = makeKey(dir, 'host_ca');
  sshd = await startSshd({ config: [`TrustedUserCAKeys ${userCa}.pub`] });
});
afterAll(async () => {
  await sshd.stop();
  rmSync(dir, { recursive: true });
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((transport) => transport.close()));
});

let configs = 0;
/** A transport to `sshd` with its own configuration. */
async function by(lines: readonly string[], options: TransportOptions, host = 'site'): Promise<Transport> {
  const sshConfigFile = join(dir, `config-${configs++}`);
  writeFileSync(sshConfigFile, `${lines.join('\n')}\n${readFileSync(sshd.sshConfigFile, 'utf8')}`);
  const transport = await openTransport(host, { ...options, sshConfigFile });
  opened.push(transport);
  return transport;
}

const outcome = (transport: Transport): Promise<string> =>
  transport.run('echo in').then(
    ({ stdout }) => stdout.toString().trim(),
    (thrown: { code: string; message: string }) => `${thrown.code}: ${thrown.message}`,
  );

/** A key in its own file whose public half the server accepts, or not. */
function key(name: string, options: { authorized: boolean; passphrase?: string; type?: 'rsa' | 'ecdsa' }): string {
  const file = makeKey(dir, name, options);
  if (options.authorized) {
    const authorized = join(sshd.configDir, 'authorized_keys');
    writeFileSync(authorized, `${readFileSync(authorized, 'utf8')}${readFileSync(`${file}.pub`, 'utf8')}`);
  }
  return file;
}

describe.each(['ssh2', 'openssh'] as const)('%s', (transport) => {
  const only = (file: string): string[] => ['Match all', `IdentityFile ${file}`, 'IdentitiesOnly yes', 'Match all'];
  /** The configuration of the server without the key that it accepts. */
  async function withKey(file: string, options: TransportOptions = {}, more: string[] = []): Promise<Transport> {
    const sshConfigFile = join(dir, `config-${configs++}`);
    const base = readFileSync(sshd.sshConfigFile, 'utf8').replace(/^ *IdentityFile .*$/m, '');
    writeFileSync(sshConfigFile, `${[...more, ...only(file)].join('\n')}\n${base}`);
    const opening = await openTransport('site', { transport, ...options, sshConfigFile });
    opened.push(opening);
    return opening;
  }

  test('a key that the server does not take is refused, and named', async () => {
    const file = key(`stranger-${transport}`, { authorized: false });
    expect(await outcome(await withKey(file))).toMatch(/^login-refused: .*refused the log-in/);
    expect(await outcome(await withKey(join(dir, 'nothing')))).toMatch(/^login-refused: /);
  });

  test.each(['rsa', 'ecdsa'] as const)('an %s key lets in', async (type) => {
    expect(await outcome(await withKey(key(`${type}-${transport}`, { authorized: true, type })))).toBe('in');
  });

  test('an encrypted key is asked for once, and never without somebody to ask', async () => {
    const file = key(`locked-${transport}`, { authorized: true, passphrase: 'open sesame' });
    expect(await outcome(await withKey(file))).toMatch(/^needs-login: /);
    const asked: PromptRequest[] = [];
    const prompt: Prompt = async (request) => {
      asked.push(request);
      return [asked.length === 1 ? 'wrong' : 'open sesame'];
    };
    const opening = await withKey(file, { prompt });
    expect(await outcome(opening)).toBe('in');
    expect(asked.length).toBe(2);
    expect(asked[0]).toMatchObject({ kind: 'passphrase', questions: [{ echo: false }] });
    expect(asked[0]?.questions[0]?.text).toContain(file);
    sshd.killSessions();
    await expect.poll(() => outcome(opening)).toBe('in');
    expect(asked.length).toBe(2);
    const nobody = await withKey(file, { prompt: async () => undefined });
    expect(await outcome(nobody)).toMatch(/^(needs-login|login-refused): /);
  });

  test('a certificate is accepted, an expired one is named in the error', async () => {
    const file = key(`certified-${transport}`, { authorized: false });
    signKey({ ca: userCa, key: file, principals: [me] });
    expect(await outcome(await withKey(file))).toBe('in');
    const certificate = signKey({ ca: userCa, key: file, principals: [me], validity: '-2h:-1h' });
    expect(await outcome(await withKey(file))).toMatch(new RegExp(`^credential-expired: .*${certificate}`));
    signKey({ ca: userCa, key: file, principals: ['somebody-else'] });
    expect(await outcome(await withKey(file))).toMatch(/^login-refused: /);
    const elsewhere = join(dir, `elsewhere-${transport}-cert.pub`);
    copyFileSync(signKey({ ca: userCa, key: file, principals: [me] }), elsewhere);
    rmSync(certificate);
    expect(await outcome(await withKey(file, {}, [`CertificateFile ${elsewhere}`]))).toBe('in');
  });

  test.each(['rsa', 'ecdsa'] as const)('an %s certificate lets in', async (type) => {
    const file = key(`certified-${type}-${transport}`, { authorized: false, type });
    signKey({ ca: userCa, key: file, principals: [me] });
    expect(await outcome(await withKey(file))).toBe('in');
  });

  test('an agent lets in, with a key and with a certificate', async () => {
    const socket = join(dir, `agent-${transport}`);
    const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
    const add = (file: string): Buffer =>
      execFileSync('ssh-add', ['-q', file], { env: { ...process.env, SSH_AUTH_SOCK: socket }, stdio: 'pipe' });
    const through = async (): Promise<string> => {
      const opening = await withKey(join(dir, 'nothing'), {}, [`IdentityAgent ${socket}`, 'IdentitiesOnly no']);
      return await outcome(opening);
    };
    try {
      const plain = key(`in-agent-${transport}`, { authorized: true, type: 'rsa' });
      await expect.poll(() => add(plain).length).toBe(0);
      rmSync(plain);
      expect(await through()).toBe('in');
      execFileSync('ssh-add', ['-q', '-D'], { env: { ...process.env, SSH_AUTH_SOCK: socket }, stdio: 'pipe' });
      expect(await through()).toMatch(/^login-refused: /);
      const certified = key(`certified-in-agent-${transport}`, { authorized: false });
      signKey({ ca: userCa, key: certified, principals: [me] });
      add(certified);
      rmSync(certified);
      rmSync(`${certified}-cert.pub`);
      expect(await through()).toBe('in');
    } finally {
      agent.kill();
    }
  });

  test('a key that others can read is left out, with the remedy', async () => {
    const file = key(`open-${transport}`, { authorized: true });
    chmodSync(file, 0o644);
    await expect((await withKey(file)).run('true')).rejects.toMatchObject({
      code: 'login-refused',
      suggestions: expect.arrayContaining([expect.stringContaining('chmod')]),
    });
  });

  test('an unknown host key is shown, not trusted; accept-new records it', async () => {
    const known = join(dir, `known-${transport}`);
    const stranger = await by([`UserKnownHostsFile ${known}`], { transport });
    const refusal = await outcome(stranger);
    const shown = execFileSync('ssh-keygen', ['-l', '-f', join(sshd.configDir, 'host_ed25519.pub')], {
      encoding: 'utf8',
    });
    expect(refusal).toMatch(/^host-key-unknown: /);
    expect(refusal).toContain(`ssh-ed25519 ${shown.split(' ')[1]}`);
    expect(await outcome(await by([`UserKnownHostsFile ${known}`], { transport, hostKeys: 'accept-new' }))).toBe('in');
    expect(readFileSync(known, 'utf8')).toMatch(new RegExp(`^\\[127\\.0\\.0\\.1\\]:${sshd.port} ssh-ed25519 \\S+\n$`));
    expect(await outcome(await by([`UserKnownHostsFile ${known}`], { transport }))).toBe('in');
  });

  test('a changed host key is refused under every policy, with file and line', async () => {
    const known = join(dir, `changed ${transport}`);
    const other = publicKeyOf(makeKey(dir, `other-host-${transport}`));
    writeFileSync(known, `# ours\n[127.0.0.1]:${sshd.port} ${other}\n`);
    for (const hostKeys of ['strict', 'accept-new'] as const) {
      const refusal = await outcome(await by([`UserKnownHostsFile "${known}"`], { transport, hostKeys }));
      expect(refusal).toMatch(/^host-key-changed: /);
      expect(refusal).toContain(`${known} line 2`);
    }
    writeFileSync(known, `@revoked * ${publicKeyOf(join(sshd.configDir, 'host_ed25519'))}\n`);
    expect(await outcome(await by([`UserKnownHostsFile "${known}"`], { transport }))).toMatch(
      /^host-key-changed: .*revoked/,
    );
  });

  test('a host whose known key is of another type shows that one', async () => {
    const rsa = makeKey(dir, `host-rsa-${transport}`, { type: 'rsa' });
    const two = await startSshd({ config: [`HostKey ${rsa}`] });
    try {
      writeFileSync(two.knownHostsFile, `[127.0.0.1]:${two.port} ${publicKeyOf(rsa)}\n`);
      const opening = await openTransport('site', { transport, sshConfigFile: two.sshConfigFile });
      opened.push(opening);
      expect(await outcome(opening)).toBe('in');
    } finally {
      await two.stop();
    }
  });

  test.each(['ed25519', 'ecdsa'] as const)(
    'a host certificate (%s) is enough, for the host that it names',
    async (type) => {
      const host = makeKey(dir, `host-${type}-${transport}`, { type });
      const sign = (principal: string): string =>
        signKey({ ca: hostCa, key: host, principals: [principal], host: true });
      const certified = await startSshd({
        config: [`HostKey ${host}`, `HostCertificate ${sign('127.0.0.1')}`, 'RekeyLimit 1M'],
      });
      try {
        writeFileSync(certified.knownHostsFile, `@cert-authority * ${publicKeyOf(hostCa)}\n`);
        const outcomeNow = async (): Promise<string> => {
          const opening = await openTransport('site', { transport, sshConfigFile: certified.sshConfigFile });
          opened.push(opening);
          return await outcome(opening);
        };
        expect(await outcomeNow()).toBe('in');
        // Keys are exchanged again, several times, on the same connection.
        const result = await opened.at(-1)?.run('head -c 8000000 /dev/zero; cat', { stdin: Buffer.alloc(4_000_000) });
        expect(result?.stdout.length).toBe(12_000_000);
        sign('another.example.org');
        await certified.restart();
        expect(await outcomeNow()).toMatch(/^host-key-unknown: /);
        writeFileSync(certified.knownHostsFile, `@cert-authority * ${publicKeyOf(userCa)}\n`);
        sign('127.0.0.1');
        await certified.restart();
        expect(await outcomeNow()).toMatch(/^host-key-unknown: /);
      } finally {
        await certified.stop();
      }
    },
  );

  test('jump hosts and proxy commands lead there', async () => {
    const inner = await startSshd();
    try {
      const config = [
        'Host inner',
        ' HostName 127.0.0.1',
        ` Port ${inner.port}`,
        ` IdentityFile ${inner.keyFile}`,
        ` UserKnownHostsFile ${inner.knownHostsFile}`,
      ];
      const jumped = await by([...config, ' ProxyJump site'], { transport }, 'inner');
      expect(await outcome(jumped)).toBe('in');
      expect((await jumped.run('echo "$HOME"')).stdout.toString()).toBe(`${inner.home}\n`);
      const twice = await by(
        [...config, ` ProxyJump site,${inner.user}@inner2`, 'Host inner2', ...config.slice(1)],
        { transport },
        'inner',
      );
      expect(await outcome(twice)).toBe('in');
      const nc = `${process.execPath} -e 's=require("net").connect(process.argv[2],process.argv[1]);process.stdin.pipe(s).pipe(process.stdout)' %%h %p`;
      const command = nc.replace('%%h', '%h');
      expect(await outcome(await by([...config, ` ProxyCommand ${command}`], { transport }, 'inner'))).toBe('in');
      expect(await outcome(await by([...config, ' ProxyCommand false'], { transport }, 'inner'))).toMatch(
        /^site-unreachable/,
      );
      const gate = [`Host gate-${inner.port}`, ' HostName 127.0.0.1', ` Port ${sshd.port}`];
      const tokens = [...config, ` User ${inner.user}`, ' ProxyJump %r@gate-%p', ...gate];
      expect(await outcome(await by(tokens, { transport }, 'inner'))).toBe('in');
      // Its standard output stays open until its end: ssh kills a proxy that closes it.
      const says = ` ProxyCommand sh -c 'echo "broker: log in first" >&2; exit 1'`;
      expect(await outcome(await by([...config, says], { transport }, 'inner'))).toContain('broker: log in first');
      sshd.kill();
      await expect.poll(() => outcome(jumped)).toMatch(/^site-unreachable/);
      await sshd.restart();
      expect(await outcome(jumped)).toBe('in');
    } finally {
      await inner.stop();
    }
  });

  test('a server that opens few sessions is used with as many as it gives', async () => {
    const few = await startSshd({ maxSessions: 2 });
    try {
      const opening = await openTransport('site', { transport, sshConfigFile: few.sshConfigFile });
      opened.push(opening);
      const answers = await Promise.all(
        Array.from({ length: 20 }, async (_, n) => (await opening.run(`echo ${n}`)).stdout.toString()),
      );
      expect(answers).toEqual(Array.from({ length: 20 }, (_, n) => `${n}\n`));
      writeFileSync(join(dir, 'few'), 'few');
      await opening.put(join(dir, 'few'), 'few');
      expect(readFileSync(join(few.home, 'few'), 'utf8')).toBe('few');
    } finally {
      await few.stop();
    }
  });

  test('a server that says nothing is given up after the time to connect', async () => {
    sshd.freeze();
    try {
      expect(await outcome(await by(['ConnectTimeout 1'], { transport }))).toMatch(/^site-unreachable: /);
    } finally {
      sshd.thaw();
    }
    expect(await outcome(await by(['ConnectTimeout 20'], { transport }))).toBe('in');
  });

  test('a cut network is noticed by the keepalives', async () => {
    const opening = await by(['ServerAliveInterval 1', 'ServerAliveCountMax 1'], { transport });
    expect(await outcome(opening)).toBe('in');
    const lost = new Promise((resolve) => void opening.onLost(resolve));
    const running = outcome(opening);
    await running;
    sshd.freeze();
    try {
      await lost;
    } finally {
      sshd.thaw();
    }
    expect(await outcome(opening)).toBe('in');
  });

  test('no such host', async () => {
    expect(await outcome(await by([], { transport }, 'ssh://nowhere.invalid'))).toMatch(/^site-unreachable: /);
  });

  test('a HOME of another place has the configuration and keys of that place', async () => {
    const before = process.env['HOME'];
    process.env['HOME'] = sshd.clientHome;
    try {
      const opening = await openTransport(sshd.url, { transport });
      opened.push(opening);
      expect(await outcome(opening)).toBe('in');
      mkdirSync(join(dir, `empty-${transport}`));
      process.env['HOME'] = join(dir, `empty-${transport}`);
      const bare = await openTransport(sshd.url, { transport });
      opened.push(bare);
      expect(await outcome(bare)).toMatch(/^host-key-unknown: /);
    } finally {
      if (before === undefined) delete process.env['HOME'];
      else process.env['HOME'] = before;
    }
  });
});
