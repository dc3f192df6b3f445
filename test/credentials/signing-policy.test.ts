import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maySign, readSigningPolicy } from '../../src/credentials/x509/signing-policy.ts';

const FILE = `# EACL of a real shape
access_id_CA      X509         '/C=DE/O=Grid/CN=Root CA'   # the root
pos_rights        globus       CA:sign
cond_subjects     globus       '"/C=DE/O=Grid/*" "/DC=org/CN=? x"'

access_id_CA X509 '/C=FR/CN=Other'
pos_rights globus CA:sign
cond_subjects globus '/C=FR/*'
access_id_CA X509 '/C=XX/CN=No Rights'
cond_subjects globus '"*"'
`;

describe('signing policies', () => {
  const policies = readSigningPolicy(FILE);

  it.each([
    ['/C=DE/O=Grid/CN=Root CA', '/C=DE/O=Grid/CN=Jane', true],
    ['/C=DE/O=Grid/CN=Root CA', '/c=de/o=GRID/CN=Jane', true],
    ['/C=DE/O=Grid/CN=Root CA', '/DC=org/CN=a x', true],
    ['/C=DE/O=Grid/CN=Root CA', '/DC=org/CN=ab x', false],
    ['/C=DE/O=Grid/CN=Root CA', '/C=FR/CN=Jane', false],
    ['/C=FR/CN=Other', '/C=FR/CN=Jane', true],
    ['/C=XX/CN=No Rights', '/C=FR/CN=Jane', false],
    ['/C=YY/CN=Unknown', '/C=FR/CN=Jane', false],
  ])('%s signs %s: %s', (authority, subject, may) => {
    expect(maySign(policies, authority, subject)).toBe(may);
  });

  it('knows the three spellings of an e-mail attribute', () => {
    const one = [{ authority: '/CN=a/Email=x@y', subjects: ['/E=*'] }];
    expect(maySign(one, '/CN=a/emailAddress=x@y', '/emailAddress=jane@y')).toBe(true);
  });

  it.each([
    ['pos_rights globus CA:sign', 'line 1'],
    ["access_id_CA X509 '/CN=a'\ncond_subjects globus", 'line 2'],
    ["access_id_CA X509 '/CN=a'\n\nbogus globus x", 'line 3'],
  ])('names the line of %j', (text, message) => {
    expect(() => readSigningPolicy(text)).toThrow(message);
  });

  it('matches like a glob, and never takes long over many stars', () => {
    const piece = fc.array(fc.constantFrom('a', 'b', '*', '?', '.', '+'), { maxLength: 12 }).map((all) => all.join(''));
    fc.assert(
      fc.property(
        piece,
        fc.string({ unit: fc.constantFrom('a', 'b', '.', '+'), maxLength: 12 }),
        (pattern, subject) => {
          const expression = pattern.replace(/[.+]/g, '\\$&').replaceAll('*', '.*').replaceAll('?', '.');
          const expected = new RegExp(`^${expression}$`).test(subject);
          expect(maySign([{ authority: 'x', subjects: [pattern] }], 'x', subject)).toBe(expected);
        },
      ),
    );
    expect(maySign([{ authority: 'x', subjects: [`${'a*'.repeat(40)}b`] }], 'x', 'a'.repeat(5000))).toBe(false);
  });
});
