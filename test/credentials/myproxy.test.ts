import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeProxy } from '../../src/credentials/delegation.ts';
import {
  changePassphrase,
  destroyCredential,
  getCredential,
  listCredentials,
  putCredential,
  type Stored,
} from '../../src/credentials/myproxy/client.ts';
import type { MyProxyServer } from '../../src/credentials/myproxy/connection.ts';
import { encodeRequest, parseResponse } from '../../src/credentials/myproxy/protocol.ts';
import { proxyInfo } from '../../src/credentials/proxy-info.ts';
import { renew } from '../../src/credentials/renew.ts';
import { loadUser, saveProxy } from '../../src/credentials/store.ts';
import { openCaDirectory } from '../../src/credentials/x509/ca-directory.ts';
import type { Credential } from '../../src/credentials/x509/proxy-file.ts';
import { GryphusError } from '../../src/errors.ts';
import { bytesOf, type GridCa, gridEnv, makeGridCa } from '../sites/grid-ca.ts';
import { type MyProxySite, startMyProxy } from '../sites/myproxy.ts';

const SECRET = 'pl4nted Pässphrase';
let ca: GridCa;
let site: MyProxySite;
let selfSite: MyProxySite;
let server: MyProxyServer;
let jane: Credential;
let host: { cert: string; key: string };
const now = Math.floor(Date.now() / 1000);
const phrase = (text = SECRET): Pick<Required<Stored>, 'passphrase'> => ({ passphrase: Buffer.from(text) });

beforeAll(async () => {
  ca = makeGridCa();
  const person = ca.person('Jane User');
  jane = await loadUser(person.cert, person.key);
  site = await startMyProxy(ca);
  selfSite = await startMyProxy(ca, ['allow_self_authorization true']);
  host = site.host;
  server = { host: 'localhost', port: site.port, trust: openCaDirectory(ca.trust), timeoutMs: 20_000 };
});
afterAll(async () => {
  await site.stop();
  await selfSite.stop();
  ca.stop();
});

async function failure(promise: Promise<unknown>): Promise<GryphusError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof GryphusError)) throw new Error(`expected a GryphusError, got ${String(thrown)}`);
  expect(`${thrown.message} ${thrown.suggestions.join(' ')} ${thrown.stack} ${String(thrown.cause)}`).not.toContain(
    SECRET,
  );
  expect(thrown.message).not.toContain('PRIVATE KEY');
  return thrown;
}

const left = (proxy: Credential) => proxyInfo(proxy.chain).end - now;
const theirs = (program: string, args: readonly string[], input = '') =>
  execFileSync(program, args, {
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
    env: gridEnv(ca, {
      MYPROXY_SERVER: 'localhost',
      MYPROXY_SERVER_PORT: String(site.port),
      MYPROXY_SERVER_DN: site.dn,
    }),
  });

describe('a real MyProxy server', () => {
  it('takes a proxy for a week and gives short ones for the passphrase', async () => {
    await putCredential(server, { user: 'jane', ...phrase() }, jane, { now });
    const proxy = await getCredential(server, { user: 'jane', ...phrase() }, { lifetime: 7200 });
    expect(left(proxy)).toBeGreaterThan(7100);
    expect(left(proxy)).toBeLessThanOrEqual(7260);
    const file = join(ca.dir, 'from myproxy');
    saveProxy(file, proxy);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(
      execFileSync('grid-proxy-info', ['-identity', '-file', file], { env: gridEnv(ca), encoding: 'utf8' }).trim(),
    ).toBe('/O=Grid/OU=Gryphus Test/CN=Jane User');
  });

  it("agrees with Debian's myproxy-logon both ways", async () => {
    const out = join(ca.dir, 'logon');
    await putCredential(server, { user: 'both', ...phrase('passphrase one') }, jane, { now });
    theirs('myproxy-logon', ['-S', '-l', 'both', '-t', '2', '-o', out], 'passphrase one\n');
    expect(
      execFileSync('grid-proxy-info', ['-timeleft', '-file', out], { env: gridEnv(ca), encoding: 'utf8' }),
    ).toMatch(/^7[12]\d\d/);
    const proxy = join(ca.dir, 'proxy for init');
    saveProxy(proxy, await makeProxy(jane, { now, lifetime: 200 * 3600 }));
    execFileSync('myproxy-init', ['-S', '-l', 'init', '-c', '100', '-C', proxy, '-y', proxy], {
      input: 'passphrase two\n',
      env: gridEnv(ca, {
        MYPROXY_SERVER: 'localhost',
        MYPROXY_SERVER_PORT: String(site.port),
        MYPROXY_SERVER_DN: site.dn,
        X509_USER_PROXY: proxy,
      }),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    expect(left(await getCredential(server, { user: 'init', ...phrase('passphrase two') }))).toBeGreaterThan(11 * 3600);
  });

  it('shows, renames the lock of, and forgets what it keeps', async () => {
    const what = { user: 'janes', ...phrase() };
    await putCredential(server, what, jane, { now });
    await putCredential(server, { ...what, credentialName: 'second' }, jane, {
      now,
      lifetime: 3600,
      renewers: site.dn,
    });
    const stored = await listCredentials(server, 'janes', jane);
    expect(stored.map((one) => one.name)).toEqual(['', 'second']);
    expect(stored[0]).toMatchObject({ owner: '/O=Grid/OU=Gryphus Test/CN=Jane User' });
    expect((stored[0]?.end ?? 0) - now).toBeGreaterThan(6 * 86_400);
    expect(stored[1]).toMatchObject({ renewer: site.dn, end: expect.any(Number) });
    await changePassphrase(server, { ...what, newPassphrase: Buffer.from('another one') }, jane);
    expect((await failure(getCredential(server, what))).code).toBe('login-refused');
    await getCredential(server, { user: 'janes', ...phrase('another one') });
    await destroyCredential(server, { user: 'janes', credentialName: 'second' }, jane);
    expect(await listCredentials(server, 'janes', jane)).toHaveLength(1);
    await destroyCredential(server, { user: 'janes' }, jane);
    expect((await failure(listCredentials(server, 'janes', jane))).message).toContain('no credentials found');
  });

  it('refuses a wrong passphrase and an unknown user, in its own words, and in none of ours', async () => {
    await putCredential(server, { user: 'wrong', ...phrase() }, jane, { now });
    expect((await failure(getCredential(server, { user: 'wrong', ...phrase('not this') }))).message).toContain(
      'invalid credential passphrase',
    );
    const nobody = await failure(getCredential(server, { user: SECRET.slice(0, 6), ...phrase() }));
    expect(nobody).toMatchObject({ code: 'login-refused', retry: 'after-credential' });
  });

  it('renews a proxy for a service that may, against a signature of the old one', async () => {
    const user = '/O=Grid/OU=Gryphus Test/CN=Jane User';
    await putCredential(server, { user, credentialName: 'renewable' }, jane, { now, renewers: site.dn });
    const old = await makeProxy(jane, { now, lifetime: 900 });
    const client = await loadUser(host.cert, host.key);
    const what = { user, credentialName: 'renewable' };
    expect(left(await getCredential(server, what, { client, old, lifetime: 3600 }))).toBeGreaterThan(3500);
    const eve = ca.person('Eve Other');
    const other = await makeProxy(await loadUser(eve.cert, eve.key), { now });
    expect((await failure(getCredential(server, what, { client, old: other }))).message).toContain(
      'does not match credential to be renewed',
    );
    expect((await failure(getCredential(server, what, { client }))).suggestions).toEqual([
      'Name a passphrase file for it.',
    ]);
    expect((await failure(getCredential(server, what, { client: old, old }))).code).toBe('login-refused');
  });

  it('keeps a short proxy fresh: by passphrase, by a service, and by itself', async () => {
    const user = '/O=Grid/OU=Gryphus Test/CN=Jane User';
    const file = join(ca.dir, 'kept fresh');
    const passphraseFile = join(ca.dir, 'pass phrase');
    writeFileSync(passphraseFile, `${SECRET}\n`, { mode: 0o600 });
    await putCredential(server, { user: 'fresh', ...phrase() }, jane, { now });
    await putCredential(server, { user, credentialName: 'service' }, jane, { now, renewers: site.dn });
    const own = { ...server, port: selfSite.port };
    await putCredential(own, { user, credentialName: 'self' }, jane, { now, renewers: user });
    const base = { host: 'localhost', port: site.port, trust: ca.trust };
    const accounts = [
      { ...base, user: 'fresh', passphraseFile },
      { ...base, user, credentialName: 'service', renewer: host },
      { ...base, port: selfSite.port, user, credentialName: 'self' },
    ];
    for (const account of accounts) {
      saveProxy(file, await makeProxy(jane, { now, lifetime: 600 }));
      const source = {
        kind: 'x509-proxy',
        name: 'jane',
        file,
        renewal: { by: 'myproxy', account, lifetime: 7200 },
      } as const;
      const done = await renew(source);
      expect(done.ok ? '' : done.message).toBe('');
      expect((done.now.end ?? 0) - now).toBeGreaterThan(7000);
    }
  });
});

describe('a MyProxy server that is not as it should be', () => {
  const get = (more: Partial<MyProxyServer> = {}) =>
    getCredential({ ...server, ...more }, { user: 'jane', ...phrase() });

  it('is down', async () => {
    expect(await failure(get({ port: 1 }))).toMatchObject({ code: 'site-unreachable', retry: 'later' });
  });

  it('is not the one that was meant', async () => {
    expect((await failure(get({ serverDn: '/O=Grid/CN=other' }))).code).toBe('host-key-changed');
    expect((await failure(get({ host: '127.0.0.1' }))).suggestions.join()).toContain(`server_dn = "${site.dn}"`);
    const stranger = makeGridCa({ name: 'Stranger CA' });
    const error = await failure(get({ trust: openCaDirectory(stranger.trust) }));
    stranger.stop();
    expect(error.message).toMatch(/is not trusted: .* is self-signed, and is not in/);
    expect(await get({ host: '127.0.0.1', serverDn: site.dn })).toBeDefined();
  });

  it.each<[string, (socket: Socket) => void, GryphusError['code'], number]>([
    ['says nothing', () => undefined, 'timeout', 300],
    ['speaks another protocol', (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'), 'protocol-error', 5000],
    ['hangs up', (socket) => socket.destroy(), 'site-unreachable', 5000],
  ])('%s', async (_what, answer, code, timeoutMs) => {
    const fake = createServer((socket) => {
      socket.on('error', () => undefined);
      answer(socket);
    });
    await new Promise<void>((resolve) => {
      fake.listen(0, '127.0.0.1', resolve);
    });
    const error = await failure(get({ port: (fake.address() as AddressInfo).port, timeoutMs }));
    fake.close();
    expect(error).toMatchObject({ code, retry: 'later' });
  });

  it('gives garbage after a good handshake, or repeats our passphrase', async () => {
    const [cert, key] = [bytesOf(host.cert), bytesOf(host.key)];
    const answers: Buffer[] = [
      Buffer.from('garbage'),
      Buffer.from('\0VERSION=MYPROXYv2\nRESPONSE=7\n\0'),
      Buffer.from('\0VERSION=MYPROXYv2\nRESPONSE=0\n\0\0'),
      Buffer.from('\0VERSION=MYPROXYv2\nRESPONSE=0\n\0\x02\x30\x84\xff\xff\xff\xff', 'latin1'),
      Buffer.from('\0VERSION=MYPROXYv2\nRESPONSE=0\n\0\x01\x30\x05abcde'),
      Buffer.concat([Buffer.from([0]), Buffer.alloc(400_000, 65)]),
    ];
    for (const answer of answers) {
      expect(await failure(talkedTo(cert, key, answer))).toMatchObject({ code: 'protocol-error', retry: 'later' });
    }
    const echo = await failure(
      talkedTo(cert, key, Buffer.from(`\0VERSION=MYPROXYv2\nRESPONSE=1\nERROR=no: ${SECRET}\n\0`)),
    );
    expect(echo.message).toBe("The MyProxy server localhost refuses 'jane': no: ***");
    const late = Buffer.from(
      '\0VERSION=MYPROXYv2\nRESPONSE=0\n\0VERSION=MYPROXYv2\nRESPONSE=1\nERROR=the disk is full\n\0',
    );
    expect((await failure(talkedTo(cert, key, late))).message).toContain('the disk is full');
  });

  async function talkedTo(cert: Buffer, key: Buffer, answer: Buffer): Promise<unknown> {
    const fake = createTlsServer({ cert, key }, (socket) => {
      socket.on('error', () => undefined);
      socket.write(answer);
    });
    await new Promise<void>((resolve) => {
      fake.listen(0, '127.0.0.1', resolve);
    });
    try {
      return await get({ port: (fake.address() as AddressInfo).port, timeoutMs: 5000 });
    } finally {
      fake.close();
    }
  }
});

describe('what is refused before anything is sent', () => {
  it('a passphrase that is too short, or has a line end', async () => {
    expect((await failure(putCredential(server, { user: 'x', ...phrase('12345') }, jane, { now }))).code).toBe(
      'bad-input',
    );
    const sneaky = phrase('secret\nRENEWER=*');
    expect((await failure(getCredential(server, { user: 'x', ...sneaky }))).code).toBe('bad-input');
    expect((await failure(getCredential(server, { user: 'x\nRETRIEVER=*', ...phrase() }))).code).toBe('bad-input');
  });

  it('a passphrase file that others can read', async () => {
    const [file, passphraseFile] = [join(ca.dir, 'p'), join(ca.dir, 'open')];
    copyFileSync(ca.caCert, file);
    writeFileSync(passphraseFile, SECRET, { mode: 0o644 });
    const account = { host: 'localhost', user: 'x', trust: ca.trust, passphraseFile };
    const done = await renew({
      kind: 'x509-proxy',
      name: 'x',
      file,
      renewal: { by: 'myproxy', account, lifetime: 60 },
    });
    expect(done).toMatchObject({ ok: false, message: expect.stringContaining('so it is refused') });
  });
});

describe('the protocol', () => {
  it('never splits a request into more fields than were given', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (user, name) => {
        let lines = 7;
        try {
          const bytes = encodeRequest({ command: 'get', user, lifetime: 1, fields: { CRED_NAME: name } });
          lines = bytes.toString().split('\n').length;
        } catch (error) {
          assert.equal((error as GryphusError).code, 'bad-input');
        }
        expect(lines).toBe(7);
      }),
    );
  });

  it('reads any bytes as a response or as none', () => {
    const line = fc.oneof(
      fc.string(),
      fc.constantFrom('RESPONSE=0', 'RESPONSE=2', 'CRED_a_b_END_TIME=5', 'AUTHORIZATION_DATA=x', '='),
    );
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        const response = parseResponse(['VERSION=MYPROXYv2', ...lines].join('\n'));
        expect(response === undefined || response.kind.length > 0).toBe(true);
      }),
    );
  });
});
