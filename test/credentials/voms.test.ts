import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeProxy } from '../../src/credentials/delegation.ts';
import { proxyAttributes, proxyInfo, proxyText } from '../../src/credentials/proxy-info.ts';
import { readProxyFile, writeProxyFile } from '../../src/credentials/x509/proxy-file.ts';
import { bytesOf, type GridCa, gridEnv, makeGridCa } from '../sites/grid-ca.ts';

let ca: GridCa;
let path: string;
const now = Math.floor(Date.now() / 1000);

beforeAll(() => {
  ca = makeGridCa();
  const [jane, voms] = [ca.person('Jane User'), ca.host()];
  path = join(ca.dir, 'voms proxy');
  const files = [
    '-cert',
    jane.cert,
    '-key',
    jane.key,
    '-hostcert',
    voms.cert,
    '-hostkey',
    voms.key,
    '-certdir',
    ca.trust,
  ];
  const attributes = [
    '-voms',
    'biomed',
    '-uri',
    'voms.example.org:15000',
    '-fqan',
    '/biomed/Role=NULL/Capability=NULL',
    '-fqan',
    '/biomed/lcg1/Role=pilot',
  ];
  execFileSync('voms-proxy-fake', [...files, ...attributes, '-vomslife', '2', '-rfc', '-out', path], {
    env: gridEnv(ca),
    stdio: 'pipe',
  });
});
afterAll(() => ca.stop());

const vomsInfo = (...args: string[]) =>
  execFileSync('voms-proxy-info', ['-file', path, ...args], { env: gridEnv(ca), encoding: 'utf8' }).trim();

describe('a proxy with VOMS attributes', () => {
  it('shows what voms-proxy-info shows', () => {
    const info = proxyInfo(readProxyFile(bytesOf(path), path).chain);
    expect(info.voms).toHaveLength(1);
    const [voms] = info.voms;
    expect(voms?.fqans.join('\n')).toBe(vomsInfo('-fqan'));
    expect(voms?.vo).toBe(vomsInfo('-vo'));
    expect(voms?.uri).toBe('voms.example.org:15000');
    expect(Math.abs((voms?.notAfter ?? 0) - now - Number(vomsInfo('-actimeleft')))).toBeLessThan(20);
    expect(Math.abs(info.end - now - Number(vomsInfo('-timeleft')))).toBeLessThan(20);
    expect(info.identity).toBe(vomsInfo('-identity'));
  });

  it('keeps them when it is written again and when another proxy follows', async () => {
    const made = readProxyFile(bytesOf(path), path);
    const copy = join(ca.dir, 'copy');
    writeFileSync(copy, writeProxyFile(made), { mode: 0o600 });
    expect(readFileSync(copy, 'utf8')).toContain('BEGIN CERTIFICATE');
    const below = join(ca.dir, 'below');
    writeFileSync(below, writeProxyFile(await makeProxy(made, { now })), { mode: 0o600 });
    for (const file of [copy, below]) {
      const said = execFileSync('voms-proxy-info', ['-file', file, '-fqan'], { env: gridEnv(ca), encoding: 'utf8' });
      expect(said.trim()).toBe(vomsInfo('-fqan'));
      expect(proxyInfo(readProxyFile(bytesOf(file), file).chain).voms[0]?.fqans).toHaveLength(2);
    }
  });

  it("gives the job HTCondor's attributes", () => {
    const info = proxyInfo(readProxyFile(bytesOf(path), path).chain);
    expect(proxyAttributes(info)).toEqual({
      x509userproxysubject: '/O=Grid/OU=Gryphus Test/CN=Jane User',
      x509UserProxyExpiration: info.end,
      x509UserProxyVOName: 'biomed',
      x509UserProxyFirstFQAN: '/biomed/Role=NULL/Capability=NULL',
      x509UserProxyFQAN:
        '/O=Grid/OU=Gryphus Test/CN=Jane User,/biomed/Role=NULL/Capability=NULL,/biomed/lcg1/Role=pilot',
    });
  });

  it('tells a person all of it', () => {
    const text = proxyText(proxyInfo(readProxyFile(bytesOf(path), path).chain), path, now);
    expect(text).toContain('strength        : 2048 bits\n');
    expect(text).toContain('VO              : biomed (voms.example.org:15000)\n');
    expect(text).toMatch(/attributes left : (2 h|1 h 59 min)\n/);
  });
});
