import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signDelegation } from '../../src/credentials/delegation.ts';
import { pair, type Credential, readChain, readKey, readProxyFile } from '../../src/credentials/x509/proxy-file.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { bytesOf, type GridCa, gridEnv, makeGridCa } from '../sites/grid-ca.ts';

const SCRIPT = fileURLToPath(new URL('../../src/credentials/delegate.sh', import.meta.url));
const SHELLS = [['dash'], ['bash', '--posix'], ['busybox', 'sh']];
const now = Math.floor(Date.now() / 1000);
const root = mkdtempSync(join(tmpdir(), 'del-'));
let ca: GridCa;
let user: Credential;

beforeAll(() => {
  ca = makeGridCa();
  const jane = ca.person('Jane User');
  user = pair(readChain(bytesOf(jane.cert), ''), readKey(bytesOf(jane.key), ''), '');
});
afterAll(() => {
  ca.stop();
  rmSync(root, { recursive: true });
});

describe.each(SHELLS)('the site half of delegation under %s', (...words) => {
  const [shell = '', ...flags] = words.filter((word): word is string => typeof word === 'string');
  const dir = join(root, `job's $(dir) ${shell}`);
  mkdirSync(dir);
  const call = (what: string, input = '', path = process.env['PATH'] ?? '') => {
    const command = `. ${shellQuote(SCRIPT)}; gryphus_delegate_${what} ${shellQuote(dir)}`;
    const found = execFileSync('sh', ['-c', `command -v ${shell}`], { encoding: 'utf8' }).trim();
    return spawnSync(found, [...flags, '-c', command], { input, encoding: 'utf8', env: { PATH: path, HOME: root } });
  };
  const request = () => {
    const { status, stdout } = call('request');
    expect(status).toBe(0);
    return stdout;
  };
  const proxy = join(dir, 'x509up');

  it('makes a key that stays, and a proxy that the grid takes', () => {
    const csr = request();
    expect(csr).not.toContain('PRIVATE KEY');
    expect(statSync(join(dir, 'proxy.key')).mode & 0o777).toBe(0o600);
    const { status, stdout, stderr } = call('install', signDelegation(csr, user, { now, lifetime: 7200 }));
    expect([status, stdout, stderr]).toEqual([0, '', '']);
    expect(readdirSync(dir)).toEqual(['x509up']);
    expect(statSync(proxy).mode & 0o777).toBe(0o600);
    const info = execFileSync('grid-proxy-info', ['-all', '-file', proxy], { env: gridEnv(ca), encoding: 'utf8' });
    expect(info).toMatch(/timeleft : (2:00:00|1:59)/);
    expect(readProxyFile(bytesOf(proxy), proxy).chain).toHaveLength(2);
  });

  it('asks the same again until it is answered, and takes the answer twice', () => {
    const csr = request();
    expect(request()).toBe(csr);
    const answer = signDelegation(csr, user, { now, lifetime: 9000 });
    expect(call('install', answer).status).toBe(0);
    const before = readFileSync(proxy, 'utf8');
    expect(call('install', answer).status).toBe(0);
    expect(readFileSync(proxy, 'utf8')).toBe(before);
  });

  it('keeps the old proxy when the answer is for another key, or damaged', () => {
    const before = readFileSync(proxy, 'utf8');
    request();
    const other = ca.openssl([
      'req',
      '-new',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-subj',
      '/CN=x',
      '-keyout',
      '/dev/null',
    ]);
    const wrong = signDelegation(other, user, { now });
    for (const answer of [wrong, '', 'garbage', wrong.slice(0, 300)]) expect(call('install', answer).status).toBe(65);
    expect(readFileSync(proxy, 'utf8')).toBe(before);
    expect(call('install', signDelegation(request(), user, { now })).status).toBe(0);
    expect(call('install', wrong).status).toBe(65);
  });

  it('says that there is no openssl', () => {
    const bin = join(root, `bin ${shell}`);
    mkdirSync(bin, { recursive: true });
    expect(call('request', '', bin).status).toBe(69);
    expect(existsSync(join(dir, 'proxy.key'))).toBe(false);
  });

  it('recovers from a half that a crash left behind', () => {
    writeFileSync(join(dir, 'proxy.csr.new'), 'half');
    writeFileSync(join(dir, 'proxy.key'), 'half a key', { mode: 0o600 });
    expect(call('install', signDelegation(request(), user, { now })).status).toBe(0);
    expect(readProxyFile(bytesOf(proxy), proxy).chain).toHaveLength(2);
  });
});
