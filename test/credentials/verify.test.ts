import { spawnSync } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeProxy } from '../../src/credentials/delegation.ts';
import { openCaDirectory } from '../../src/credentials/x509/ca-directory.ts';
import type { Certificate } from '../../src/credentials/x509/certificate.ts';
import { nameHash, oldNameHash } from '../../src/credentials/x509/name.ts';
import { certificatePem } from '../../src/credentials/x509/pem.ts';
import { type Credential, pair, readChain, readKey } from '../../src/credentials/x509/proxy-file.ts';
import { verifyChain } from '../../src/credentials/x509/verify.ts';
import { bytesOf, type GridCa, gridEnv, makeGridCa, type Person } from '../sites/grid-ca.ts';

let ca: GridCa;
let stranger: GridCa;
let jane: Person;
let user: Credential;
const now = Math.floor(Date.now() / 1000);
const day = 86_400;
const load = (person: Person) =>
  pair(readChain(bytesOf(person.cert), person.cert), readKey(bytesOf(person.key), person.key), person.key);
const ec = { now, keyType: 'ec' } as const;
const verdict = (chain: readonly [Certificate, ...Certificate[]], at = now, trust = ca.trust) =>
  verifyChain(chain, openCaDirectory(trust), { now: at });
const refused = (chain: readonly [Certificate, ...Certificate[]], at = now, trust = ca.trust) => {
  const said = verdict(chain, at, trust);
  if (said.ok) throw new Error(`accepted: ${said.identity}`);
  expect(said.message).toMatch(/^[^\n]+\.$/);
  return said.code;
};

/** openssl's verdict on the same chain. */
function openssl(chain: readonly Certificate[], more: readonly string[] = []): boolean {
  const [leaf, rest] = [join(ca.dir, 'leaf'), join(ca.dir, 'rest')];
  const [first, ...others] = chain.map((one) => certificatePem(one.der));
  writeFileSync(leaf, first ?? '');
  writeFileSync(rest, others.join(''));
  const args = ['verify', '-allow_proxy_certs', ...more, '-CAfile', ca.caCert];
  return spawnSync('openssl', [...args, ...(others.length > 0 ? ['-untrusted', rest] : []), leaf]).status === 0;
}

/** A chain that our own code refuses to issue. */
function forged(below: Credential, change: (chain: Certificate) => Certificate): Credential {
  return { ...below, chain: [change(below.chain[0]), ...below.chain.slice(1)] };
}

beforeAll(() => {
  ca = makeGridCa();
  stranger = makeGridCa({ name: 'Stranger CA' });
  jane = ca.person('Jane User');
  user = load(jane);
});
afterAll(() => {
  ca.stop();
  stranger.stop();
});

describe('a chain is accepted', () => {
  it('of the user alone, of proxies, and with the others in any order', async () => {
    const one = await makeProxy(user, ec);
    const two = await makeProxy(one, { ...ec, rights: 'limited', lifetime: 600 });
    const authority = readChain(bytesOf(ca.caCert), '');
    for (const chain of [user.chain, one.chain, two.chain]) {
      expect(verdict(chain)).toMatchObject({ ok: true, identity: jane.dn });
      expect(openssl(chain)).toBe(true);
    }
    expect(verdict(one.chain)).toMatchObject({ limited: false });
    expect(verdict(two.chain)).toMatchObject({ limited: true, end: now + 600 });
    const [leaf, ...rest] = two.chain;
    expect(verdict([leaf, ...rest.toReversed(), ...authority])).toMatchObject({ ok: true, identity: jane.dn });
  });

  it('with EC keys all along', async () => {
    const ecUser = load(ca.person('Ec User', { newkey: ['ec', '-pkeyopt', 'ec_paramgen_curve:P-384'] }));
    expect(verdict((await makeProxy(ecUser, ec)).chain)).toMatchObject({ ok: true });
  });

  it('through an intermediate authority that the chain brings', () => {
    const middle = ca.person('Middle', {
      extensions: ['basicConstraints=critical,CA:TRUE,pathlen:0', 'keyUsage=critical,keyCertSign'],
    });
    const [key, request, cert] = ['i.key', 'i.req', 'i.pem'].map((name) => join(ca.dir, name)) as [
      string,
      string,
      string,
    ];
    ca.openssl([
      'req',
      '-new',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-subj',
      '/O=Grid/CN=Below',
      '-keyout',
      key,
      '-out',
      request,
    ]);
    ca.openssl([
      'x509',
      '-req',
      '-in',
      request,
      '-CA',
      middle.cert,
      '-CAkey',
      middle.key,
      '-set_serial',
      '5',
      '-days',
      '9',
      '-out',
      cert,
    ]);
    const chain = [...readChain(bytesOf(cert), ''), ...readChain(bytesOf(middle.cert), '')] as unknown as [Certificate];
    expect(refused(chain)).toBe('policy');
    const policy = readFileSync(join(ca.trust, `${ca.hash}.signing_policy`), 'utf8').replace(ca.dn, middle.dn);
    const hash = nameHash(readChain(bytesOf(middle.cert), '')[0].subject.der);
    writeFileSync(join(ca.trust, `${hash}.signing_policy`), policy);
    expect(verdict(chain)).toMatchObject({ ok: true, identity: '/O=Grid/CN=Below' });
  });

  it('within the skew of clocks, and no further', async () => {
    const { chain } = await makeProxy(user, { ...ec, lifetime: 600 });
    const [{ notBefore, notAfter }] = chain;
    expect(verdict(chain, notAfter + 299)).toMatchObject({ ok: true });
    expect(refused(chain, notAfter + 301)).toBe('expired');
    const early = user.chain[0].notBefore;
    expect(notBefore).toBeGreaterThanOrEqual(early);
    expect(verdict(chain, notBefore - 299)).toMatchObject({ ok: true });
    expect(refused(chain, notBefore - 301)).toBe('not-yet-valid');
  });
});

describe('a chain is refused', () => {
  it('of an unknown authority', () => {
    const mallory = load(stranger.person('Mallory'));
    expect(refused(mallory.chain)).toBe('unknown-authority');
    const [root] = readChain(bytesOf(stranger.caCert), '');
    expect(refused([mallory.chain[0], root])).toBe('unknown-authority');
    expect(openssl([mallory.chain[0], root])).toBe(false);
  });

  it('of one who takes the name of an authority', () => {
    const impostor = makeGridCa();
    const mallory = load(impostor.person('Jane User'));
    impostor.stop();
    expect(refused(mallory.chain)).toBe('bad-signature');
    expect(openssl(mallory.chain)).toBe(false);
  });

  it('whose proxy was changed in one bit, anywhere in it', async () => {
    const { chain } = await makeProxy(user, ec);
    const { body } = chain[0];
    expect(
      refused(
        forged({ chain, key: user.key }, (one) => {
          const other = Buffer.from(body);
          other.writeUInt8((other.at(-1) ?? 0) ^ 1, other.length - 1);
          return { ...one, body: other };
        }).chain,
      ),
    ).toBe('bad-signature');
  });

  it('with more proxies than the path length lets follow', async () => {
    const none = await makeProxy(user, { ...ec, pathLength: 0 });
    const lie = {
      ...none,
      chain: [{ ...none.chain[0], proxy: { ...none.chain[0].proxy, pathLength: undefined } }, ...user.chain],
    };
    const below = await makeProxy(lie as unknown as Credential, ec);
    const chain = [below.chain[0], none.chain[0], ...user.chain] as const;
    expect(refused(chain)).toBe('path-length');
    expect(openssl(chain)).toBe(false);
  });

  it('with a full proxy below a limited one, as Globus refuses it', async () => {
    const limited = await makeProxy(user, { ...ec, rights: 'limited' });
    const lie = { ...limited, chain: [{ ...limited.chain[0], proxy: undefined }, ...user.chain] };
    const below = await makeProxy(lie as unknown as Credential, { ...ec, rights: 'full' });
    expect(refused([below.chain[0], limited.chain[0], ...user.chain])).toBe('limited');
  });

  it('without its user, or with a certificate in place of a proxy', async () => {
    const proxy = await makeProxy(user, ec);
    expect(refused([proxy.chain[0]])).toBe('unknown-authority');
    const plain = ca.person('x', { subject: `${jane.dn}/CN=7` });
    expect(verdict(load(plain).chain)).toMatchObject({ ok: true, identity: `${jane.dn}/CN=7` });
  });

  it('where a user plays an authority', () => {
    const [key, request, cert] = ['u.key', 'u.req', 'u.pem'].map((name) => join(ca.dir, name)) as [
      string,
      string,
      string,
    ];
    ca.openssl([
      'req',
      '-new',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-subj',
      '/O=Grid/CN=Boss',
      '-keyout',
      key,
      '-out',
      request,
    ]);
    ca.openssl([
      'x509',
      '-req',
      '-in',
      request,
      '-CA',
      jane.cert,
      '-CAkey',
      jane.key,
      '-set_serial',
      '9',
      '-days',
      '9',
      '-out',
      cert,
    ]);
    const chain = [...readChain(bytesOf(cert), ''), ...user.chain] as unknown as [Certificate];
    expect(refused(chain)).toBe('not-an-authority');
    expect(openssl(chain)).toBe(false);
  });

  it('with an unknown critical extension', () => {
    const odd = load(ca.person('Odd', { extensions: ['1.2.3.4=critical,ASN1:UTF8String:x'] }));
    expect(refused(odd.chain)).toBe('unknown-extension');
    expect(openssl(odd.chain)).toBe(false);
  });

  it('signed with SHA-1', () => {
    const cert = join(ca.dir, 'sha1.pem');
    const request = join(ca.dir, 'sha1.req');
    ca.openssl(['req', '-new', '-key', jane.key, '-subj', jane.dn, '-out', request]);
    ca.openssl([
      'x509',
      '-req',
      '-in',
      request,
      '-CA',
      ca.caCert,
      '-CAkey',
      ca.caKey,
      '-sha1',
      '-days',
      '9',
      '-set_serial',
      '3',
      '-out',
      cert,
    ]);
    expect(refused(readChain(bytesOf(cert), ''))).toBe('weak-signature');
  });

  it('once it is revoked, and when the revocation list is too old to say', () => {
    const gone = load(ca.person('Gone'));
    const file = join(ca.dir, 'person 1.pem');
    ca.revoke([file]);
    expect(refused(user.chain)).toBe('revoked');
    expect(openssl(user.chain, ['-crl_check', '-CRLfile', join(ca.trust, `${ca.hash}.r0`)])).toBe(false);
    expect(verdict(gone.chain)).toMatchObject({ ok: true });
    expect(refused(gone.chain, now + 31 * day)).toBe('stale-crl');
    ca.revoke([]);
    expect(verdict(user.chain)).toMatchObject({ ok: true });
  });

  it('with a revocation list of somebody else under its name', () => {
    const other = makeGridCa();
    other.revoke([]);
    const dir = join(ca.dir, 'mixed');
    mkdirSync(dir);
    for (const ending of ['0', 'signing_policy'])
      copyFileSync(join(ca.trust, `${ca.hash}.${ending}`), join(dir, `${ca.hash}.${ending}`));
    copyFileSync(join(other.trust, `${other.hash}.r0`), join(dir, `${ca.hash}.r0`));
    other.stop();
    expect(refused(user.chain, now, dir)).toBe('bad-signature');
  });

  it('without a signing policy, or against it; Globus agrees', () => {
    const narrow = makeGridCa({ policy: '"/O=Grid/OU=Elsewhere/*"' });
    const bare = makeGridCa({ policy: false });
    for (const authority of [narrow, bare]) {
      const person = authority.person('Jane User');
      expect(refused(load(person).chain, now, authority.trust)).toBe('policy');
      const env = gridEnv(authority, { X509_USER_CERT: person.cert, X509_USER_KEY: person.key });
      const args = ['-verify', '-q', '-out', join(authority.dir, 'p')];
      expect(spawnSync('grid-proxy-init', args, { env }).status).not.toBe(0);
      authority.stop();
    }
    const env = gridEnv(ca, { X509_USER_CERT: jane.cert, X509_USER_KEY: jane.key });
    expect(spawnSync('grid-proxy-init', ['-verify', '-q', '-out', join(ca.dir, 'p')], { env }).status).toBe(0);
  });
});

describe('the CA directory', () => {
  it('has the hash names of openssl, new and old, also for odd names', () => {
    const subjects = ['/C=DE/O=  Two   Blanks /CN=Ünïcode Ä', '/DC=org/DC=grid/CN=A b/emailAddress=A@B.org', '/CN=x'];
    for (const subject of subjects) {
      const pem = ca.openssl([
        'req',
        '-x509',
        '-utf8',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-subj',
        subject,
        '-keyout',
        '/dev/null',
      ]);
      const [{ subject: name }] = readChain(Buffer.from(pem), '');
      expect(nameHash(name.der)).toBe(ca.openssl(['x509', '-noout', '-subject_hash'], pem).trim());
      expect(oldNameHash(name.der)).toBe(ca.openssl(['x509', '-noout', '-subject_hash_old'], pem).trim());
    }
  });

  it('names the file and the line of a signing policy that is damaged', () => {
    const broken = makeGridCa();
    appendFileSync(join(broken.trust, `${broken.hash}.signing_policy`), 'nonsense here now\n');
    const chain = load(broken.person('Jane User')).chain;
    expect(() => verdict(chain, now, broken.trust)).toThrow(
      `${broken.hash}.signing_policy cannot be read: line 4: 'nonsense'`,
    );
    broken.stop();
  });

  it('says which variable to set where there is none', () => {
    expect(() => openCaDirectory('/nowhere/at all')).toThrow('/nowhere/at all');
  });
});
