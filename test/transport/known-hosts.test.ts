import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { addKnownHost } from '../../src/transport/host-keys.ts';
import { hashHost, checkHostKey, knownFor, matchesHost, parseKnownHosts } from '../../src/transport/known-hosts.ts';
import { fingerprint } from '../../src/transport/public-key.ts';
import { hostCertificateFault } from '../../src/transport/host-certificate.ts';
import { readCertificateLine } from '../../src/util/ssh-certificate.ts';
import { makeKey, publicKeyOf, signKey } from '../sites/ssh-keys.ts';

const dir = mkdtempSync(join(tmpdir(), 'gkh-'));
afterAll(() => rmSync(dir, { recursive: true }));

const blobOf = (line: string): Buffer => Buffer.from(line.split(' ')[1] ?? '', 'base64');
const [first, second] = ['first', 'second'].map((name) => publicKeyOf(makeKey(dir, name))) as [string, string];
const rsa = publicKeyOf(makeKey(dir, 'rsa', { type: 'rsa' }));
const NOW = 1_800_000_000;

const judge = (text: string, name: string, key: string): string => {
  const verdict = checkHostKey(parseKnownHosts(text, 'kh'), name, blobOf(key), NOW);
  return 'by' in verdict ? `${verdict.kind} ${verdict.by.line}` : verdict.kind;
};

test('a key is known, unknown, changed or revoked', () => {
  const text = `# comment\n\nhost,10.0.0.1 ${first}\n[host]:2222 ${second}\n@revoked * ${rsa}\nbroken\n`;
  expect(judge(text, 'host', first)).toBe('known');
  expect(judge(text, '10.0.0.1', first)).toBe('known');
  expect(judge(text, 'host', second)).toBe('changed 3');
  expect(judge(text, '[host]:2222', second)).toBe('known');
  // A key known for the host applies to its ports, and does not make another key there a changed one.
  expect(judge(text, '[host]:2222', first)).toBe('known');
  expect(judge(text, '[host]:2223', second)).toBe('unknown');
  expect(judge(text, 'else', first)).toBe('unknown');
  expect(judge(text, 'host', rsa)).toBe('revoked 5');
  expect(judge(`${text}host ${rsa}\n`, 'host', rsa)).toBe('revoked 5');
  expect(judge(`host ${rsa}\n`, 'host', first)).toBe('unknown');
  expect(knownFor(parseKnownHosts(`host ${rsa}\n@cert-authority *.org ${first}\n`, 'kh'), 'host')).toEqual({
    types: ['ssh-rsa'],
    authority: false,
  });
});

test('wildcards, negation and hashes', () => {
  expect(judge(`*.example.org,!bad.example.org ${first}`, 'a.example.org', first)).toBe('known');
  expect(judge(`*.example.org,!bad.example.org ${first}`, 'bad.example.org', first)).toBe('unknown');
  expect(judge(`${hashHost('[host]:22022')} ${first}`, '[host]:22022', first)).toBe('known');
  expect(judge(`${hashHost('host')} ${first}`, 'host', second)).toBe('changed 1');
});

test('lines match the hosts that ssh-keygen -F finds them for', () => {
  const host = fc.constantFrom('a', 'ab', 'a.b', 'x.a.b', '[a]:22', '[a]:2022', '[a.b]:2022');
  const pattern = fc.oneof(host, fc.constantFrom('*', '?', 'a*', '*.b', '!a', '!*.b', '[*]:2022', 'A.B'));
  const field = fc.oneof(
    fc.array(pattern, { minLength: 1, maxLength: 4 }).map((patterns) => patterns.join(',')),
    host.map((name) => hashHost(name)),
  );
  const file = join(dir, 'known');
  fc.assert(
    fc.property(fc.array(field, { minLength: 1, maxLength: 5 }), host, (fields, name) => {
      writeFileSync(file, fields.map((hosts) => `${hosts} ${first}\n`).join(''));
      let found = '';
      try {
        found = execFileSync('ssh-keygen', ['-F', name, '-f', file], { encoding: 'utf8', stdio: 'pipe' });
      } catch {
        // It exits with 1 if nothing was found.
      }
      const theirs = [...found.matchAll(/found: line (\d+)/g)].map(([, line]) => Number(line));
      const ours = parseKnownHosts(readFileSync(file, 'utf8'), file).filter(({ hosts }) => matchesHost(hosts, name));
      expect(ours.map(({ line }) => line)).toEqual(theirs);
    }),
    { numRuns: 80 },
  );
});

test('reading is total', () => {
  const word = fc.oneof(fc.string(), fc.constantFrom('@revoked', '@cert-authority', '|1|x|y', 'ssh-ed25519', first));
  fc.assert(
    fc.property(fc.array(word), (words) => {
      const entries = parseKnownHosts(words.join(' '), 'kh');
      expect(checkHostKey(entries, 'host', blobOf(second), NOW).kind).toMatch(/known|unknown|changed|revoked/);
    }),
  );
});

test('a new line is appended after what is there, in a file that only we can read', () => {
  const file = join(dir, 'new', 'known_hosts');
  addKnownHost(file, 'host', blobOf(first));
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(dir, 'new')).mode & 0o777).toBe(0o700);
  writeFileSync(file, `old ${first}`);
  addKnownHost(file, hashHost('host'), blobOf(second));
  expect(parseKnownHosts(readFileSync(file, 'utf8'), file).map(({ line }) => line)).toEqual([1, 2]);
  expect(judge(readFileSync(file, 'utf8'), 'host', second)).toBe('known');
});

test('fingerprints are those of ssh-keygen', () => {
  const shown = execFileSync('ssh-keygen', ['-l', '-f', join(dir, 'first.pub')], { encoding: 'utf8' });
  expect(shown.split(' ')[1]).toBe(fingerprint(blobOf(first)));
});

test.each(['ed25519', 'rsa', 'ecdsa'] as const)('a host certificate by an authority with a key of type %s', (type) => {
  const ca = makeKey(dir, `ca-${type}`, { type });
  const now = Date.now() / 1000;
  const trusts = (authority: Buffer): boolean => authority.equals(blobOf(publicKeyOf(ca)));
  const fault = (
    request: { principals?: string[]; validity?: string; host?: boolean; key?: string },
    name = 'host',
  ) => {
    const key = request.key ?? join(dir, 'first');
    const file = signKey({ ca, key, principals: request.principals ?? ['host', 'alias'], host: true, ...request });
    const certificate = readCertificateLine(readFileSync(file, 'utf8'));
    if (typeof certificate === 'string') throw new Error('unreadable');
    return hostCertificateFault(certificate, name, now, trusts);
  };
  expect(fault({})).toBeUndefined();
  expect(fault({ key: join(dir, 'rsa') }, 'alias')).toBeUndefined();
  expect(fault({}, 'other')).toBe('it is for host, alias');
  expect(fault({ validity: '-2h:-1h' })).toBe('it has expired');
  expect(fault({ validity: '+1h:+2h' })).toBe('it is not valid yet');
  expect(fault({ host: false })).toBe('it is a user certificate');

  const good = readCertificateLine(
    readFileSync(signKey({ ca, key: join(dir, 'first'), principals: ['host'], host: true }), 'utf8'),
  );
  if (typeof good === 'string') throw new Error('unreadable');
  expect(hostCertificateFault(good, 'host', now, () => false)).toMatch('no @cert-authority line');
  const forged = { ...good, signed: Buffer.concat([good.signed, Buffer.from([0])]) };
  expect(hostCertificateFault(forged, 'host', now, trusts)).toBe('its signature is invalid');
  const other = blobOf(publicKeyOf(makeKey(dir, `not-ca-${type}`, { type })));
  expect(hostCertificateFault({ ...good, authority: other }, 'host', now, () => true)).toBe('its signature is invalid');
});
