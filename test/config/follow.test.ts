import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { followSettings, SiteBook } from '../../src/config/follow.ts';
import { loadPaths, type Paths } from '../../src/config/paths.ts';

let home: string;
let paths: Paths;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gfol-'));
  paths = loadPaths({ GRYPHUS_HOME: home });
  mkdirSync(paths.sitesDir);
});
afterEach(() => rmSync(home, { recursive: true }));

describe('settings that are followed', () => {
  it('are those of the file now, and stay what they were while it is wrong', async () => {
    const heard: string[] = [];
    let wake = () => {};
    const next = () =>
      new Promise<void>((resolve) => {
        wake = resolve;
      });
    const { settings, follow, close } = await followSettings(paths);
    follow({
      changed: (now) => {
        heard.push(`now ${now['log.level']}`);
        wake();
      },
      wrong: (message) => {
        heard.push(message);
        wake();
      },
    });
    try {
      expect(settings['log.level']).toBe('info');
      let seen = next();
      writeFileSync(paths.configFile, '[log]\nlevel = "debug"\n[gridmanager]\nretry_min = "7s"\n');
      await seen;
      expect([settings['log.level'], settings['gridmanager.retry_min']]).toEqual(['debug', 7]);
      seen = next();
      writeFileSync(paths.configFile, '[log]\nlevel = "verbose, please"\n');
      await seen;
      expect(settings['log.level']).toBe('debug');
      seen = next();
      rmSync(paths.configFile);
      await seen;
      expect(settings['log.level']).toBe('info');
      expect(heard).toEqual(['now debug', expect.stringMatching(/config\.toml, line 2: .*stay in force/), 'now info']);
    } finally {
      close();
    }
  });
});

describe('the book of the sites', () => {
  const site = (name: string, text: string) => writeFileSync(join(paths.sitesDir, `${name}.toml`), text);

  it('has one of them as its file is now, and the same object as long as that has not changed', async () => {
    const book = new SiteBook(paths);
    site('c', 'url = "ssh://c"\nbatch = "slurm"\n');
    const first = await book.site('c');
    expect(first?.url).toBe('ssh://c');
    expect(await book.site('c')).toBe(first);
    site('c', 'url = "ssh://other"\nbatch = "slurm"\n');
    expect((await book.site('c'))?.url).toBe('ssh://other');
    site('c', 'url = "ssh://oth');
    expect((await book.site('c'))?.url).toBe('ssh://other');
    expect(book.problem('c')?.code).toBe('bad-config');
    rmSync(join(paths.sitesDir, 'c.toml'));
    expect([await book.site('c'), book.problem('c')]).toEqual([undefined, undefined]);
    writeFileSync(join(paths.sitesDir, '../d.toml'), 'url = "ssh://d"\nbatch = "slurm"\n');
    expect(await book.site('../d')).toBeUndefined();
    expect([(await book.site('local'))?.name, (await book.site('pool'))?.name]).toEqual(['local', 'pool']);
  });

  it('has each as its file is now; a torn one spoils no other and stays what it was', async () => {
    const wrong: string[] = [];
    const book = new SiteBook(paths, (message) => wrong.push(message));
    site('a', 'url = "ssh://a.example.org"\nbatch = "slurm"\n');
    site('b', 'url = "ssh://b.example.org"\n');
    const first = await book.sites();
    expect([...first.keys()]).toEqual(['local', 'a', 'b']);
    expect((await book.sites()).get('a')).toBe(first.get('a'));

    site('a', 'url = "ssh://a.example.org"\nbatch = "slu');
    site('b', 'url = "ssh://b.example.org"\n[limits]\nqueued = 5\n');
    site('new', 'url = \n');
    const torn = await book.sites();
    expect([...torn.keys()]).toEqual(['local', 'a', 'b']);
    expect(torn.get('a')?.batch).toBe('slurm');
    expect(torn.get('b')?.limits.queued).toBe(5);
    expect([...book.problems.keys()]).toEqual(['a', 'new']);
    expect(book.problem('new')?.message).toContain('new.toml');
    expect(wrong).toHaveLength(2);
    await book.sites();
    expect(wrong).toHaveLength(2);

    site('a', 'url = "ssh://a.example.org"\nbatch = "sge"\n');
    rmSync(join(paths.sitesDir, 'new.toml'));
    expect((await book.sites()).get('a')?.batch).toBe('sge');
    expect(book.problems.size).toBe(0);
  });
});
