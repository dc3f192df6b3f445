import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import { parseEndpoint } from '../../src/transport/endpoint.ts';

test.each([
  ['local', { kind: 'local' }],
  ['ssh://me@login.example.org', { kind: 'ssh', user: 'me', host: 'login.example.org', port: undefined }],
  ['ssh://login.example.org:2222/', { kind: 'ssh', user: undefined, host: 'login.example.org', port: 2222 }],
  ['me@host', { kind: 'ssh', user: 'me', host: 'host', port: undefined }],
  ['cluster1', { kind: 'ssh', user: undefined, host: 'cluster1', port: undefined }],
  ['ssh://a%40b@[::1]:22', { kind: 'ssh', user: 'a@b', host: '::1', port: 22 }],
  ['first@realm@host', { kind: 'ssh', user: 'first@realm', host: 'host', port: undefined }],
  ['::1', { kind: 'ssh', user: undefined, host: '::1', port: undefined }],
])('%s', (text, endpoint) => {
  expect(parseEndpoint(text)).toEqual(endpoint);
});

test.each([
  ['http://host', 'not a supported URL scheme'],
  ['ssh://', 'the host is missing'],
  ['', 'the host is missing'],
  ['ssh://host/dir', 'the URL of a site must not have a path'],
  ['ssh://me:secret@host', 'the URL of a site must not contain a password'],
  ['ssh://host:0', '"0" is not a port'],
  ['ssh://host:port', '"port" is not a port'],
  ['-oProxyCommand=x', 'is not a host name'],
  ['ssh://-x@host', 'is not a user name'],
  ['ssh://a b', 'is not a host name'],
  ['ssh://%zz@host', 'is not a user name'],
])('%s is refused', (text, why) => {
  expect(() => parseEndpoint(text)).toThrow(why);
});

test('whatever is typed is an endpoint that no program takes for an option, or a clear refusal', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(safe(text)).toBe(true);
    }),
  );
});

function safe(text: string): boolean {
  try {
    const endpoint = parseEndpoint(text);
    return endpoint.kind === 'local' || (/^[^-\s'"`$]/.test(endpoint.host) && /^[^-]/.test(endpoint.user ?? 'me'));
  } catch (thrown) {
    return thrown instanceof GryphusError && thrown.code === 'bad-input';
  }
}
