import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import { configValues } from '../../src/transport/ssh-config.ts';
import { type Directive, loadSshConfig, parseLine, splitArguments } from '../../src/transport/ssh-config-parser.ts';
import { matchesPattern } from '../../src/transport/ssh-pattern.ts';
import { type SshSettings, sshSettings } from '../../src/transport/ssh-settings.ts';

const dir = mkdtempSync(join(tmpdir(), 'gsc-'));
afterAll(() => rmSync(dir, { recursive: true }));

const parse = (files: Record<string, string>): readonly Directive[] =>
  loadSshConfig('config', {
    read: (path) => files[path],
    glob: (pattern) =>
      Object.keys(files)
        .filter((name) => matchesPattern(name, pattern))
        .sort(),
  });

const settings = (
  text: string,
  host = 'host',
  more: Record<string, string> = {},
  exec = (command: string): boolean => command === 'test host = host',
): SshSettings =>
  sshSettings({ kind: 'ssh', host, user: undefined, port: undefined }, [parse({ config: text, ...more })], {
    home: '/home/me',
    localUser: 'me',
    localHost: 'laptop.example.org',
    uid: 1000,
    env: { SSH_AUTH_SOCK: '/run/agent', WHERE: '/keys' },
    exec,
  });

test('the first value wins, blocks bound what follows', () => {
  const text = `
Host other !host
  Port 1
Host ho* !hot
  Port 2
  User first
Host *
  Port 3
  User second
  HostName %h.example.org`;
  expect(settings(text)).toMatchObject({ port: 2, user: 'first', hostName: 'host.example.org' });
  expect(settings(text, 'hot')).toMatchObject({ port: 3, user: 'second', hostName: 'hot.example.org' });
  expect(settings(text, 'other')).toMatchObject({ port: 1 });
});

test('Match', () => {
  expect(settings('Match originalhost host user me\n Port 5').port).toBe(5);
  expect(settings('HostName x.org\nMatch host host\n Port 5\nMatch host *.org\n Port 6').port).toBe(6);
  expect(settings('Match !user me\n Port 5\nMatch all\n Port 6').port).toBe(6);
  expect(settings('Match exec "test %n = host"\n Port 7').port).toBe(7);
  expect(settings('Match exec "test %n = other"\n Port 7').port).toBe(22);
  expect(settings('Match final host x.org\n Port 9\nHost *\n HostName x.org').port).toBe(9);
  expect(settings('Match final all\n HostName x.org').hostName).toBe('host');
  expect(() => settings('Match moon full\n Port 7')).toThrow('config line 1: Match has no criterion "moon"');
});

test('Include keeps to the block it stands in', () => {
  const more = { 'd/a': 'Port 7\nHost *\n User fromA', 'd/b': 'User fromB' };
  expect(settings('Host other\n Include d/*\nHost *\n Port 1', 'host', more)).toMatchObject({ port: 1, user: 'me' });
  expect(settings('Host host\n Include d/*\n Port 1', 'host', more)).toMatchObject({ port: 7, user: 'fromA' });
  expect(settings('Include d/b\nInclude d/a', 'host', more)).toMatchObject({ port: 7, user: 'fromB' });
  expect(() => settings('Include config')).toThrow('nested too deeply');
});

test('files, tokens and lists', () => {
  const found = settings(`IdentityFile ~/.ssh/%n_%r_%p
IdentityFile "/with space/key"
CertificateFile \${WHERE}/%u-cert.pub
UserKnownHostsFile ~/a "/b c" # comment
GlobalKnownHostsFile none
ProxyCommand  nc -X "a b" %h %p # part of it
Port 2222
ServerAliveInterval 20
StrictHostKeyChecking accept-new`);
  expect(found.identityFiles.map(({ path }) => path)).toEqual(['/home/me/.ssh/host_me_2222', '/with space/key']);
  expect(found.certificateFiles).toEqual(['/keys/me-cert.pub']);
  expect(found.userKnownHosts).toEqual(['/home/me/a', '/b c']);
  expect(found.globalKnownHosts).toEqual([]);
  expect(found.proxyCommand).toBe('nc -X "a b" host 2222 # part of it');
  expect(found).toMatchObject({ hostKeyName: '[host]:2222', serverAliveIntervalMs: 20_000, agent: '/run/agent' });
  expect(settings('HostKeyAlias Cluster\nPort 7').hostKeyName).toBe('cluster');
  expect(settings('ProxyJump a,b\nProxyCommand x')).toMatchObject({ proxyJump: ['a', 'b'], proxyCommand: undefined });
  expect(settings('ProxyCommand x\nProxyJump a')).toMatchObject({ proxyJump: [], proxyCommand: 'x' });
  expect(settings('ProxyJump none\nProxyCommand x')).toMatchObject({ proxyJump: [], proxyCommand: undefined });
});

test('tokens, times and variables are those of OpenSSH', () => {
  const run: string[] = [];
  const exec = (command: string): boolean => run.push(command) > 0;
  const found = (text: string) => settings(text, 'host', {}, exec);
  expect(found('ProxyJump gate\nHostKeyAlias alias\nMatch exec "%d %i %L %l %k %j %h"\n Port 7').port).toBe(7);
  expect(run).toEqual(['/home/me 1000 laptop laptop.example.org alias gate host']);
  expect(found('User u\nPort 5\nProxyJump %r@gate-%h:%p,b')).toMatchObject({ proxyJump: ['u@gate-host:5', 'b'] });
  expect(found('ServerAliveInterval 1m\nConnectTimeout 1m30s')).toMatchObject({
    serverAliveIntervalMs: 60_000,
    connectTimeoutMs: 90_000,
  });
  expect(found('ConnectTimeout 1H').connectTimeoutMs).toBe(3_600_000);
  expect(found('IdentityAgent $WHERE').agent).toBe('/keys');
  expect(found('IdentityAgent $NOPE').agent).toBeUndefined();
  expect(found('IdentityAgent none').agent).toBeUndefined();
  const hash = createHash('sha1').update('laptop.example.orghost22me').digest('hex');
  expect(found('IdentityFile /k/%C').identityFiles).toEqual([{ path: `/k/${hash}`, explicit: true }]);
});

test.each([
  ['PKCS11Provider /lib/p11.so', 'PKCS11Provider'],
  ['CanonicalizeHostname yes', 'CanonicalizeHostname'],
  ['CanonicalizeHostname no', undefined],
  ['KnownHostsCommand /usr/bin/sss_ssh_knownhosts %H', 'KnownHostsCommand'],
  ['RevokedHostKeys /etc/ssh/revoked', 'RevokedHostKeys'],
  ['RevokedHostKeys none', undefined],
  ['Match localnetwork 10.0.0.0/8\n Port 7', 'Match localnetwork'],
  ['Match host other sessiontype shell\n Port 7', undefined],
])('what only the ssh program supports is left to it: %s', (text, needs) => {
  const found = settings(text);
  expect([found.needsOpenssh, found.port]).toEqual([needs, 22]);
});

test.each([
  ['Port twelve', 'port "twelve" is not a number'],
  ['IdentityFile %z', 'IdentityFile "%z" has an unknown %z'.toLowerCase()],
  ['IdentityFile ${NOPE}', 'names ${NOPE}, which is not set'],
  ['User "open', 'config line 1: a quote is not closed'],
  ['User', 'config line 1: "user" has no value'],
])('%s is one clear error', (text, message) => {
  expect(() => settings(text)).toThrow(message);
});

test('parsing is total, and quoted words come back as they were', () => {
  fc.assert(
    fc.property(fc.string(), (line) => {
      expect(readable(line)).toBeTypeOf('boolean');
    }),
  );
  const word = fc.string({ minLength: 1 }).filter((text) => !/["\\\n]/.test(text));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1 }), (words) => {
      expect(splitArguments(words.map((text) => `"${text}"`).join(' '))).toEqual(words);
    }),
  );
});

test('patterns agree with the same as a regular expression, also where that would take for ever', () => {
  const piece = fc.array(fc.constantFrom('a', 'b', '*', '?', '.'), { maxLength: 8 });
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', '.'), { maxLength: 8 }), piece, (text, pattern) => {
      const same = pattern
        .map((char) => (char === '*' ? '.*' : char === '?' ? '.' : char === '.' ? '\\.' : char))
        .join('');
      expect(matchesPattern(text.join(''), pattern.join(''))).toBe(new RegExp(`^${same}$`).test(text.join('')));
    }),
  );
  expect(matchesPattern('a'.repeat(200), '*a'.repeat(60) + 'b')).toBe(false);
});

/** False for a line that is refused by name; anything else that is thrown is a bug. */
function readable(line: string): boolean {
  try {
    parseLine(line, 'f', 1);
    return true;
  } catch (thrown) {
    if (thrown instanceof GryphusError) return false;
    throw thrown;
  }
}

const defaults = (host: string): Record<string, string[]> => ({
  user: [userInfo().username],
  port: ['22'],
  hostname: [host],
});

/** What `ssh -G` shows of the keywords that we read. */
const SHOWN = [
  'user',
  'hostname',
  'port',
  'identityfile',
  'identitiesonly',
  'connecttimeout',
  'serveraliveinterval',
  'hostkeyalias',
  'proxyjump',
  'proxycommand',
  'userknownhostsfile',
  'stricthostkeychecking',
  'certificatefile',
];

function asSshSees(file: string, host: string): Record<string, string[]> {
  const shown: Record<string, string[]> = {};
  for (const line of execFileSync('ssh', ['-G', '-F', file, host], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).split('\n')) {
    const [keyword = '', ...rest] = line.split(' ');
    if (SHOWN.includes(keyword)) (shown[keyword] ??= []).push(rest.join(' '));
  }
  return shown;
}

test('values are those that ssh -G shows', () => {
  const name = fc.constantFrom('alpha', 'beta', 'gamma.example.org');
  const pattern = fc.constantFrom('alpha', '!alpha', 'a*', '*', '?eta', '*.example.org', '!*.org', 'x.org');
  const setting = fc.oneof(
    name.map((user) => `User ${user}`),
    fc.constantFrom('HostName x.org', 'HostName %h.org', 'HostName=y'),
    fc.integer({ min: 1, max: 65_535 }).map((port) => `Port ${port}`),
    fc.constantFrom('IdentityFile ~/k1', 'IdentityFile "/a b"', "identityfile '/c'", 'IdentitiesOnly yes'),
    fc.constantFrom('ProxyJump j1,j2', 'ProxyJump none', 'ProxyCommand nc "%h" %p', 'ProxyCommand=none'),
    fc.constantFrom(
      'HostKeyAlias q',
      'ConnectTimeout 5',
      '\tServerAliveInterval = 7',
      'StrictHostKeyChecking accept-new',
    ),
    fc.constantFrom('UserKnownHostsFile /a /b', 'UserKnownHostsFile "/c d"', 'CertificateFile /cert', '# comment'),
  );
  const block = fc.oneof(
    fc.array(pattern, { minLength: 1, maxLength: 3 }).map((patterns) => `Host ${patterns.join(' ')}`),
    fc
      .tuple(fc.constantFrom('host', 'originalhost', 'user', '!host', '!user'), pattern)
      .map(([by, what]) => `Match ${by} ${what.replace('!', '')}`),
    fc.constantFrom(
      'Match all',
      'Match exec true',
      'Match exec false',
      'Match host alpha user beta',
      'Match final all',
    ),
  );
  const text = fc
    .array(fc.oneof({ weight: 3, arbitrary: setting }, block), { maxLength: 12 })
    .map((lines) => lines.join('\n'));
  const file = join(dir, 'config');
  fc.assert(
    fc.property(text, name, (config, host) => {
      writeFileSync(file, config);
      const shown = asSshSees(file, host);
      const values = configValues([parse({ config })], {
        host,
        user: undefined,
        port: undefined,
        localUser: userInfo().username,
        localTokens: {},
        exec: (command) => command === 'true',
      });
      const expected: Record<string, string[]> = {};
      for (const keyword of SHOWN) {
        const ours = values.get(keyword) ?? defaults(host)[keyword];
        if (ours === undefined || ours[0] === 'none') delete shown[keyword];
        else if (keyword === 'hostname') expected[keyword] = [(ours[0] ?? '').replaceAll('%h', host)];
        else expected[keyword] = keyword === 'userknownhostsfile' ? [ours.join(' ')] : [...ours];
      }
      expect(shown).toEqual(expected);
    }),
    { numRuns: 150, examples: [['HostName x.org\nHost x.org\nPort 1\nMatch final all', 'alpha']] },
  );
});
