import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { readCertificateLine, type SshCertificate } from '../../src/util/ssh-certificate.ts';
import { fingerprint } from '../../src/transport/public-key.ts';

const dir = mkdtempSync(join(tmpdir(), 'sshc-'));
afterAll(() => rmSync(dir, { recursive: true }));
const keygen = (...args: string[]) =>
  execFileSync('ssh-keygen', args, { cwd: dir, encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } });
keygen('-q', '-t', 'ed25519', '-N', '', '-f', 'ca', '-C', 'the ca');

function certificateOf(line: string): SshCertificate {
  const found = readCertificateLine(line);
  if (typeof found === 'string') throw new Error(found);
  return found;
}

let count = 0;
function certify(keyType: readonly string[], sign: readonly string[]) {
  const name = `key ${++count}`;
  keygen('-q', ...keyType, '-N', '', '-f', name);
  keygen('-q', '-s', 'ca', '-I', 'jane $(id) "x"', ...sign, `${name}.pub`);
  const path = join(dir, `${name}-cert.pub`);
  return {
    name,
    path,
    certificate: certificateOf(readFileSync(path, 'utf8')),
    shown: keygen('-L', '-f', path),
  };
}

describe('an OpenSSH certificate', () => {
  it.each([
    [['-t', 'ed25519']],
    [['-t', 'rsa', '-b', '2048']],
    [['-t', 'ecdsa', '-b', '256']],
    [['-t', 'ecdsa', '-b', '384']],
    [['-t', 'ecdsa', '-b', '521']],
  ])('of %j is read as ssh-keygen shows it', (keyType) => {
    const sign = ['-n', 'jane,o hara', '-z', '18446744073709551615', '-V', '20260101000000Z:20260102030405Z'];
    const { certificate, shown, name } = certify(keyType, [...sign, '-O', 'force-command=echo "a b"', '-O', 'no-pty']);
    expect(certificate).toMatchObject({
      kind: 'user',
      serial: 18446744073709551615n,
      keyId: 'jane $(id) "x"',
      principals: ['jane', 'o hara'],
      validAfter: Date.UTC(2026, 0, 1) / 1000,
      validBefore: Date.UTC(2026, 0, 2, 3, 4, 5) / 1000,
      criticalOptions: { 'force-command': 'echo "a b"' },
      extensions: ['permit-X11-forwarding', 'permit-agent-forwarding', 'permit-port-forwarding', 'permit-user-rc'],
    });
    expect(shown).toContain(`${certificate.type} user certificate`);
    expect(shown).toContain(`CERT ${fingerprint(certificate.publicKey)}\n`);
    expect(shown).toContain(`CA: ED25519 ${fingerprint(certificate.authority)}`);
    expect(keygen('-l', '-f', `${name}.pub`)).toContain(fingerprint(certificate.publicKey));
  });

  it('without an end, without principals, for a host', () => {
    const { certificate } = certify(['-t', 'ed25519'], ['-h', '-V', 'always:forever']);
    expect(certificate).toMatchObject({ kind: 'host', principals: [], validAfter: 0, validBefore: undefined });
  });

  it.each([
    ['', 'it is empty'],
    ['ssh-ed25519 AAAA x', 'its first word does not name a certificate type'],
    ['ssh-ed25519-cert-v01@openssh.com AAAA', 'it is truncated'],
  ])('is not %j', (line, why) => {
    expect(readCertificateLine(line)).toBe(why);
  });

  it('cut or changed anywhere gives why it is none or another certificate, never anything else', () => {
    const { path } = certify(['-t', 'ed25519'], ['-n', 'jane', '-V', '+1h']);
    const [type = '', base64 = ''] = readFileSync(path, 'utf8').split(' ');
    const bytes = Buffer.from(base64, 'base64');
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), fc.nat(bytes.length), (at, value, cut) => {
        const changed = Buffer.from(bytes.subarray(0, cut));
        if (at < changed.length) changed[at] = value;
        const found = readCertificateLine(`${type} ${changed.toString('base64')}`);
        expect(typeof found === 'string' || found.type === type).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});
