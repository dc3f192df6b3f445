import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import forge from 'node-forge';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeProxy, signDelegation } from '../../src/credentials/delegation.ts';
import {
  pair,
  type Credential,
  readChain,
  readKey,
  readProxyFile,
  writeProxyFile,
} from '../../src/credentials/x509/proxy-file.ts';
import { kindOf } from '../../src/credentials/x509/certificate.ts';
import { makeKey } from '../../src/credentials/x509/sign.ts';
import { makeRequest } from '../../src/credentials/x509/request.ts';
import { writePem } from '../../src/credentials/x509/pem.ts';
import { bytesOf, type GridCa, gridEnv, makeGridCa, type Person } from '../sites/grid-ca.ts';

let ca: GridCa;
let jane: Person;
let user: Credential;
const now = Math.floor(Date.now() / 1000);
const load = (person: Person) =>
  pair(readChain(bytesOf(person.cert), person.cert), readKey(bytesOf(person.key), person.key), person.key);

beforeAll(() => {
  ca = makeGridCa();
  jane = ca.person('Jane User');
  user = load(jane);
});
afterAll(() => ca.stop());

let files = 0;
function save(proxy: Credential): string {
  const path = join(ca.dir, `proxy${++files}`);
  writeFileSync(path, writeProxyFile(proxy), { mode: 0o600 });
  return path;
}
const tool = (program: string, args: readonly string[], env = {}) =>
  execFileSync(program, args, { env: gridEnv(ca, env), encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** The verdict of every grid tool that is installed here. */
function accepted(path: string): string {
  const issuers = join(ca.dir, 'issuers.pem');
  writeFileSync(issuers, readFileSync(path, 'utf8').replace(/^[\s\S]*?-----END CERTIFICATE-----\n/, ''));
  const verify = ['verify', '-allow_proxy_certs', '-CAfile', ca.caCert, '-untrusted', issuers, path];
  expect(tool('openssl', verify)).toContain(': OK');
  expect(tool('grid-proxy-info', ['-exists', '-valid', '0:30', '-file', path])).toBe('');
  expect(tool('voms-proxy-info', ['-all', '-file', path])).toContain('Jane User');
  return tool('grid-proxy-info', ['-all', '-file', path]);
}

describe('proxies', () => {
  it('are what the grid makes: full, for 12 hours, and its tools agree', async () => {
    const path = save(await makeProxy(user, { now }));
    const info = accepted(path);
    expect(info).toContain('type     : RFC 3820 compliant impersonation proxy');
    expect(info).toContain(`identity : ${jane.dn}`);
    expect(info).toMatch(/timeleft : (12:00:00|11:59:5\d)/);
    const labels = readFileSync(path, 'utf8').match(/BEGIN [A-Z ]+/g);
    expect(labels).toEqual(['BEGIN CERTIFICATE', 'BEGIN PRIVATE KEY', 'BEGIN CERTIFICATE']);
  });

  it.each([
    ['limited', 'RFC 3820 compliant limited proxy'],
    ['independent', 'RFC 3820 compliant independent proxy'],
  ] as const)('can be %s', async (rights, type) => {
    expect(accepted(save(await makeProxy(user, { now, rights })))).toContain(type);
  });

  it('can follow one another, five deep, each below the last', async () => {
    let proxy = user;
    for (let depth = 5; depth > 0; depth--)
      proxy = await makeProxy(proxy, { now, keyType: 'ec', pathLength: depth - 1 });
    accepted(save(proxy));
    expect(proxy.chain).toHaveLength(6);
    await expect(makeProxy(proxy, { now })).rejects.toThrow('path length is 0');
  });

  it('of a limited proxy are limited, and never full', async () => {
    const limited = await makeProxy(user, { now, keyType: 'ec', rights: 'limited' });
    const below = await makeProxy(limited, { now, keyType: 'ec' });
    expect(kindOf(below.chain[0])).toBe('limited-proxy');
    accepted(save(below));
    await expect(makeProxy(limited, { now, rights: 'full' })).rejects.toThrow('a limited proxy gives limited ones');
  });

  it('end with their issuer', async () => {
    const short = await makeProxy(user, { now, keyType: 'ec', lifetime: 3600 });
    const below = await makeProxy(short, { now, keyType: 'ec', lifetime: 99_999 });
    expect(below.chain[0].notAfter).toBe(short.chain[0].notAfter);
    await expect(makeProxy(short, { now: now + 7200 })).rejects.toMatchObject({ code: 'credential-expired' });
  });

  it.each([
    ['P-256', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']],
    ['P-384', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-384']],
  ])('come from EC certificates too (%s)', async (_name, newkey) => {
    const ec = load(ca.person('Jane User', { newkey }));
    accepted(save(await makeProxy(ec, { now })));
    accepted(save(await makeProxy(await makeProxy(ec, { now, keyType: 'ec' }), { now, keyType: 'ec' })));
  });

  it('come from an encrypted key, in either form, and no error tells the passphrase', () => {
    const secret = 'pl4nted $(secret) ü';
    const person = ca.person('Jane User', { passphrase: secret });
    const old = join(ca.dir, 'old.key');
    ca.openssl(
      ['rsa', '-in', person.key, '-passin', 'stdin', '-aes256', '-traditional', '-passout', 'stdin', '-out', old],
      `${secret}\n${secret}\n`,
    );
    expect(readFileSync(old, 'utf8')).toContain('Proc-Type: 4,ENCRYPTED');
    for (const path of [person.key, old]) {
      const key = readKey(bytesOf(path), path, Buffer.from(secret));
      expect(key.asymmetricKeyType).toBe('rsa');
      expect(() => readKey(bytesOf(path), path)).toThrow('is encrypted');
      expect(() => readKey(bytesOf(path), path, Buffer.from('wrong'))).toThrow(
        `The passphrase does not decrypt the key in ${path}.`,
      );
    }
  });

  it('are read when grid-proxy-init made them, and can be delegated further', async () => {
    for (const flags of [[], ['-limited'], ['-path-length', '3'], ['-independent']]) {
      const path = join(ca.dir, `made elsewhere ${flags.join('')}`);
      tool('grid-proxy-init', ['-q', ...flags, '-out', path], { X509_USER_CERT: jane.cert, X509_USER_KEY: jane.key });
      const made = readProxyFile(bytesOf(path), path);
      expect(kindOf(made.chain[0])).toContain('proxy');
      accepted(save(await makeProxy(made, { now })));
    }
  });

  it('from before RFC 3820 are recognized, and delegate nothing', async () => {
    const path = join(ca.dir, 'legacy');
    tool('grid-proxy-init', ['-q', '-old', '-out', path], { X509_USER_CERT: jane.cert, X509_USER_KEY: jane.key });
    const made = readProxyFile(bytesOf(path), path);
    expect(kindOf(made.chain[0])).toBe('legacy-proxy');
    await expect(makeProxy(made, { now })).rejects.toThrow('a proxy from before RFC 3820');
  });

  it('are read by an independent reader as they were written', async () => {
    const proxy = await makeProxy(user, { now, pathLength: 3 });
    const seen = forge.pki.certificateFromPem(readFileSync(save(proxy), 'utf8'));
    expect(seen.validity.notAfter.getTime() / 1000).toBe(proxy.chain[0].notAfter);
    expect(BigInt(`0x${seen.serialNumber}`)).toBe(proxy.chain[0].serial);
    expect(forge.pki.certificateFromPem(readFileSync(jane.cert, 'utf8')).verify(seen)).toBe(true);
  });

  it('have serials of their own', async () => {
    const key = await makeKey();
    const request = writePem('CERTIFICATE REQUEST', makeRequest(key));
    const serials = Array.from(
      { length: 50 },
      () => readChain(Buffer.from(signDelegation(request, user, { now })), '')[0].serial,
    );
    expect(new Set(serials).size).toBe(50);
  });
});

describe('delegation', () => {
  it('signs what openssl asked for at the other side, and the key never travels', () => {
    const [key, request, proxy] = ['their.key', 'their.csr', 'their proxy'].map((name) => join(ca.dir, name)) as [
      string,
      string,
      string,
    ];
    ca.openssl(['req', '-new', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=x', '-keyout', key, '-out', request]);
    const [first, ...issuers] = signDelegation(readFileSync(request, 'utf8'), user, { now, rights: 'limited' }).split(
      /(?=-----BEGIN)/,
    );
    writeFileSync(proxy, [first, readFileSync(key, 'utf8'), ...issuers].join(''), { mode: 0o600 });
    expect(accepted(proxy)).toContain('limited proxy');
  });

  it.each([
    ['no request at all', () => 'hello', 'cannot be read'],
    ['a request that was changed', () => changed(), 'is not signed with its own key'],
    ['a small key', () => smallRequest(), 'has an RSA key of 1024 bits'],
  ])('refuses %s', (_what, request, message) => {
    expect(() => signDelegation(request(), user, { now })).toThrow(message);
  });

  it('refuses an issuer whose key is another', async () => {
    const request = writePem('CERTIFICATE REQUEST', makeRequest(await makeKey()));
    const key = await makeKey();
    expect(() => signDelegation(request, { chain: user.chain, key }, { now })).toThrow(
      'does not match its certificate',
    );
    expect(() => pair(user.chain, key, '/some/file')).toThrow('/some/file');
  });

  it("refuses a certificate authority's certificate", async () => {
    const authority = pair(readChain(bytesOf(ca.caCert), ''), readKey(bytesOf(ca.caKey), ''), '');
    await expect(makeProxy(authority, { now })).rejects.toThrow("only users' certificates");
  });
});

function smallRequest(): string {
  return ca.openssl([
    'req',
    '-new',
    '-newkey',
    'rsa:1024',
    '-nodes',
    '-subj',
    '/CN=x',
    '-keyout',
    join(ca.dir, 'small.key'),
  ]);
}

function changed(): string {
  const pem = ca.openssl([
    'req',
    '-new',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-subj',
    '/CN=someone',
    '-keyout',
    join(ca.dir, 'x.key'),
  ]);
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64');
  der.write('anybody', der.indexOf('someone'));
  return writePem('CERTIFICATE REQUEST', der);
}
