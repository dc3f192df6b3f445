import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadPaths, type Paths } from '../../src/config/paths.ts';
import { formatSiteUrl, parseSiteUrl } from '../../src/config/site-url.ts';
import { loadSite, loadSites, removeSite, saveSite } from '../../src/config/sites.ts';

let paths: Paths;
beforeEach(() => {
  paths = loadPaths({ GRYPHUS_HOME: mkdtempSync(join(tmpdir(), 'gry-')) });
});
afterEach(() => rmSync(paths.configDir, { recursive: true }));

describe('sites', () => {
  it('always have `local`, which runs plain processes here', async () => {
    expect([...(await loadSites(paths)).values()]).toMatchObject([
      { name: 'local', target: { kind: 'local' }, batch: 'fork', limits: { running: undefined } },
    ]);
  });

  it('are saved for their owner alone and read back', async () => {
    const prelude = 'module load "slurm"\nexport A=\'b\' # ünïcode';
    await saveSite(paths, 'c1', {
      url: 'ssh://me@login:2222',
      batch: 'slurm',
      prelude,
      'limits.queued': 7,
      'limits.poll_min': '500ms',
    });
    const site = await loadSite(paths, 'c1');
    expect(site).toMatchObject({ batch: 'slurm', prelude, limits: { queued: 7, pollMin: 0.5, pollMax: 60 } });
    expect(site.target).toEqual({ kind: 'ssh', host: 'login', user: 'me', port: 2222 });
    expect(statSync(join(paths.sitesDir, 'c1.toml')).mode & 0o777).toBe(0o600);
    expect(statSync(paths.sitesDir).mode & 0o777).toBe(0o700);
    expect(readdirSync(paths.sitesDir)).toEqual(['c1.toml']);
    for (const scratch of ['~', '~/jobs', '/a $b/~c', 'below-home']) {
      await saveSite(paths, 'c1', { scratch });
      expect((await loadSite(paths, 'c1')).scratch).toBe(scratch);
    }
    expect(removeSite(paths, 'c1')).toBe(true);
    expect(removeSite(paths, 'c1')).toBe(false);
  });

  it('refuse what cannot be, and write nothing', async () => {
    await expect(saveSite(paths, '../evil', {})).rejects.toMatchObject({ code: 'bad-input' });
    await expect(saveSite(paths, 'a', { batch: 'slrum' })).rejects.toMatchObject({ code: 'bad-config' });
    await expect(saveSite(paths, 'a', { url: 'http://x' })).rejects.toThrow('ssh://user@host:port');
    for (const scratch of ['$SCRATCH', '${TMPDIR}/x', '~me/jobs'])
      await expect(saveSite(paths, 'a', { scratch })).rejects.toThrow('a directory without variables');
    expect([...(await loadSites(paths)).keys()]).toEqual(['local']);
  });

  it('name the file and the line of a mistake', async () => {
    mkdirSync(paths.sitesDir);
    writeFileSync(join(paths.sitesDir, 'x.toml'), 'batch = "fork"\n[limits]\nqueud = 3\n');
    await expect(loadSites(paths)).rejects.toMatchObject({
      message: `${paths.sitesDir}/x.toml, line 3: unknown key 'limits.queud'.`,
      suggestions: ["Did you mean 'limits.queued'?"],
    });
  });

  it('that are not there are asked for with the nearest name', async () => {
    await saveSite(paths, 'cluster1', { url: 'c1' });
    await expect(loadSite(paths, 'clutser1')).rejects.toMatchObject({
      code: 'site-unknown',
      suggestions: ["Did you mean 'cluster1'?", expect.stringContaining('site add')],
    });
    await expect(loadSite(paths, '../config')).rejects.toMatchObject({ code: 'site-unknown' });
  });
});

describe("a site's url", () => {
  it.each([
    ['local', { kind: 'local' }],
    ['c1', { kind: 'ssh', host: 'c1' }],
    ['ssh://login.example.org', { kind: 'ssh', host: 'login.example.org' }],
    ['me@login', { kind: 'ssh', user: 'me', host: 'login' }],
    ['ssh://me@[::1]:22/', { kind: 'ssh', user: 'me', host: '::1', port: 22 }],
    ['ssh://a%40b@h:1', { kind: 'ssh', user: 'a@b', host: 'h', port: 1 }],
  ])('%s', (url, target) => expect(parseSiteUrl(url)).toEqual(target));

  it.each(['', 'http://x', 'ssh://', '-oProxyCommand=x', 'ssh://-l@h', 'h:0', 'h:70000', 'a b', 'ssh://h/path'])(
    'refuses %j',
    (url) => expect(() => parseSiteUrl(url)).toThrow(expect.objectContaining({ code: 'bad-input' })),
  );

  it.each(['ssh://a:pw@h', 'a:pw@h:22', 'ssh://a%3Apw@h', 'ssh://:pw@h', 'ssh://a:p%40w:x@h/', 'ssh://a:p@w@h'])(
    'has no password: %s, which is not shown again',
    (url) => {
      const refused = expect.objectContaining({
        code: 'bad-input',
        message: expect.stringMatching(/^A URL of a site has no password: write (ssh:\/\/)?a?@/),
      });
      expect(() => parseSiteUrl(url)).toThrow(refused);
      expect(() => parseSiteUrl(url)).not.toThrow(/pw|p%40w|p@w/);
    },
  );

  it('in a file has none either', async () => {
    mkdirSync(paths.sitesDir, { recursive: true, mode: 0o700 });
    writeFileSync(join(paths.sitesDir, 'leaky.toml'), 'batch = "fork"\nurl = "ssh://a:pw@h"\n', { mode: 0o600 });
    const error: unknown = await loadSite(paths, 'leaky').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'bad-config',
      message: expect.stringContaining('line 2: A URL of a site has no password'),
    });
    expect(String(error)).not.toContain('pw');
    rmSync(join(paths.sitesDir, 'leaky.toml'));
  });

  it('is printed so that it reads back the same', () => {
    const host = fc.oneof(fc.domain(), fc.ipV4(), fc.ipV6(), fc.constant('alias_1'));
    const user = fc.string({ minLength: 1, unit: 'grapheme' }).filter((s) => !s.startsWith('-') && !s.includes(':'));
    fc.assert(
      fc.property(host, fc.option(user), fc.option(fc.integer({ min: 1, max: 65_535 })), (host, user, port) => {
        const target = { kind: 'ssh' as const, host, ...(user ? { user } : {}), ...(port ? { port } : {}) };
        expect(parseSiteUrl(formatSiteUrl(target))).toEqual(target);
      }),
    );
  });
});
