import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { identityFilesOf, needsOf } from '../../src/config/credential-needs.ts';
import { type Credentials, loadCredentials } from '../../src/config/credentials.ts';
import { moment } from '../../src/config/kinds.ts';
import { LOCAL_SITE, type SiteRecord } from '../../src/config/sites.ts';
import { Attrs } from '../../src/job/attrs.ts';

const dir = mkdtempSync('/tmp/gcf-');
const paths = { configDir: dir };
const write = (name: string, text: string) => writeFileSync(join(dir, 'credentials', `${name}.toml`), text);

beforeAll(() => mkdirSync(join(dir, 'credentials')));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe('a time in a configuration file', () => {
  it.each([
    ['2026-12-31', Date.UTC(2027, 0, 1)],
    ['2026-12-31T18:00:00Z', Date.UTC(2026, 11, 31, 18)],
    ['2026-12-31 18:00', Date.UTC(2026, 11, 31, 18)],
    ['2026-12-31T18:00:00+02:00', Date.UTC(2026, 11, 31, 16)],
  ])('%s', (text, ms) => {
    expect(moment.read(text)).toBe(ms / 1000);
  });

  it.each(['tomorrow', '2026-13-01', '31.12.2026', '', 5])('is not %j', (raw) => {
    expect(moment.read(raw)).toBeUndefined();
  });

  it('may be bare, as TOML has it', async () => {
    write('hours', 'kind = "allocation"\nuntil = 2026-12-31\n');
    write('exact', 'kind = "account"\nuntil = 2026-12-31T18:00:00Z\n');
    const { good } = await loadCredentials(paths);
    expect(good.get('hours')).toMatchObject({ kind: 'allocation', until: Date.UTC(2027, 0, 1) / 1000 });
    expect(good.get('exact')).toMatchObject({ until: Date.UTC(2026, 11, 31, 18) / 1000 });
  });
});

describe('descriptions of credentials', () => {
  it('have their home, their ways to be renewed; one that is wrong spoils no other', async () => {
    write('key', 'kind = "ssh-key"\nfile = "~/.ssh/site key"\nlifetime = "24h"\nrenew_command = "fetch-key"\n');
    write('long', 'kind = "x509-proxy"\nfile = "/p"\n[myproxy]\nhost = "m"\nuser = "jane"\nlifetime = "6h"\n');
    write('wrong', 'kind = "ssh-key"\nfle = "/x"\n');
    const { good, bad } = await loadCredentials(paths);
    expect(good.get('key')).toEqual({
      name: 'key',
      kind: 'ssh-key',
      file: join(homedir(), '.ssh/site key'),
      lifetime: 86_400,
      renewal: { by: 'command', command: 'fetch-key', timeoutMs: 120_000 },
    });
    expect(good.get('long')?.renewal).toMatchObject({
      by: 'myproxy',
      lifetime: 21_600,
      account: { host: 'm', port: 7512 },
    });
    expect([...bad]).toEqual([['wrong', `${dir}/credentials/wrong.toml, line 2: unknown key 'fle'.`]]);
  });
});

describe('what a job needs', () => {
  const credentials: Credentials = {
    good: new Map([
      ['jane', { name: 'jane', kind: 'x509-proxy', file: '/p' }],
      ['cert', { name: 'cert', kind: 'ssh-certificate', file: '/k/id-cert.pub' }],
    ]),
    bad: new Map(),
  };
  const site = (more: Partial<SiteRecord>): SiteRecord => ({ ...LOCAL_SITE, name: 's', ...more });
  const job = (file?: string, more = {}) =>
    new Attrs({ ...(file === undefined ? {} : { x509userproxy: `"${file}"` }), Owner: '"jane"', ...more });

  it('is nothing, for most', () => {
    expect(needsOf(job(), site({}), credentials)).toEqual({ names: [], sources: [], proxy: undefined });
  });

  it('is its proxy, by the name that describes the file, or by its path', () => {
    expect(needsOf(job('/p'), site({}), credentials)).toMatchObject({ names: ['jane'], proxy: { file: '/p' } });
    expect(needsOf(job('/q'), site({}), credentials)).toMatchObject({ names: ['/q'], proxy: { file: '/q' } });
  });

  it("is also its site's credential and allocation; one without a description stays a name", () => {
    const wants = site({ credential: 'cert', allocationEnd: 5 });
    expect(needsOf(job('/p'), wants, credentials).names).toEqual(['jane', 'cert', 's allocation']);
    expect(needsOf(job(), site({ credential: 'none' }), credentials)).toMatchObject({ names: ['none'], sources: [] });
    expect(needsOf(job(), site({ credential: 'jane' }), credentials).proxy?.file).toBe('/p');
    expect(identityFilesOf(wants, credentials)).toEqual(['/k/id']);
    expect(identityFilesOf(site({ credential: 'jane' }), credentials)).toBeUndefined();
  });

  it("is renewed from the job's own MyProxy server; HTCondor counts its lifetime in minutes", () => {
    const { sources } = needsOf(
      job('/q', { MyProxyHost: '"m.org:7000"', MyProxyNewProxyLifetime: '30' }),
      undefined,
      credentials,
    );
    expect(sources[0]?.renewal).toMatchObject({ lifetime: 1800, account: { host: 'm.org', port: 7000, user: 'jane' } });
  });
});
