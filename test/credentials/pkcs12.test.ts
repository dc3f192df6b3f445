import { chmodSync, copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeProxy } from '../../src/credentials/delegation.ts';
import { defaultFiles, loadUser } from '../../src/credentials/store.ts';
import { openCaDirectory } from '../../src/credentials/x509/ca-directory.ts';
import { verifyChain } from '../../src/credentials/x509/verify.ts';
import { type GridCa, makeGridCa, type Person } from '../sites/grid-ca.ts';

const SECRET = 'pl4nted $(secret)';
const now = Math.floor(Date.now() / 1000);
let ca: GridCa;
let jane: Person;
beforeAll(() => {
  ca = makeGridCa();
  jane = ca.person('Jane User');
});
afterAll(() => ca.stop());

let files = 0;
function exported(person: Person, passphrase: string, ...options: readonly string[]): string {
  const path = join(ca.dir, `user${++files}.p12`);
  const what = ['-export', '-in', person.cert, '-inkey', person.key, '-certfile', ca.caCert];
  ca.openssl(['pkcs12', ...what, ...options, '-passout', 'stdin', '-out', path], passphrase);
  chmodSync(path, 0o600);
  return path;
}
const open = (path: string, passphrase: string) => loadUser(path, path, () => Promise.resolve(Buffer.from(passphrase)));

describe("a user's PKCS#12 file", () => {
  it.each([
    ['of today (AES, SHA-256)', []],
    ['of old browsers (3DES, SHA-1)', ['-keypbe', 'PBE-SHA1-3DES', '-certpbe', 'PBE-SHA1-3DES', '-macalg', 'sha1']],
    ['with certificates that are not encrypted', ['-certpbe', 'NONE']],
  ])('%s gives proxies that sites accept', async (_what, options) => {
    const proxy = await makeProxy(await open(exported(jane, SECRET, ...options), SECRET), { now });
    const verdict = verifyChain(proxy.chain, openCaDirectory(ca.trust), { now });
    expect(verdict).toMatchObject({ ok: true, identity: jane.dn });
  });

  it('may hold an EC key', async () => {
    const ec = ca.person('Ec User', { newkey: ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] });
    const user = await open(exported(ec, SECRET), SECRET);
    expect(user.key.asymmetricKeyType).toBe('ec');
    expect(user.chain[0].subject.text).toBe(ec.dn);
    expect(user.chain).toHaveLength(2);
  });

  it('is opened by no other passphrase, and the message tells none', async () => {
    const path = exported(jane, SECRET);
    const refused = await open(path, 'wrong').catch((thrown: unknown) => thrown);
    expect(refused).toMatchObject({ code: 'login-refused', message: `The passphrase does not open ${path}.` });
  });

  it('is closed to others, or refused', async () => {
    const path = exported(jane, SECRET);
    chmodSync(path, 0o644);
    await expect(open(path, SECRET)).rejects.toMatchObject({ code: 'not-permitted' });
  });

  it('is the default where there is no usercert.pem', () => {
    const globus = join(ca.dir, '.globus');
    mkdirSync(globus);
    expect(defaultFiles({}, ca.dir).cert).toBe(join(globus, 'usercert.pem'));
    copyFileSync(exported(jane, SECRET), join(globus, 'usercred.p12'));
    expect(defaultFiles({}, ca.dir).cert).toBe(join(globus, 'usercred.p12'));
    copyFileSync(jane.cert, join(globus, 'usercert.pem'));
    expect(defaultFiles({}, ca.dir).cert).toBe(join(globus, 'usercert.pem'));
  });
});
