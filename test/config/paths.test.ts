import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ensureStateDirs, loadPaths } from '../../src/config/paths.ts';

describe('paths', () => {
  it('are those of XDG, without its relative ones', () => {
    expect(loadPaths({ XDG_CONFIG_HOME: 'relative' }, () => '/home/me')).toMatchObject({
      configFile: '/home/me/.config/gryphus/config.toml',
      sitesDir: '/home/me/.config/gryphus/sites',
      stateDir: '/home/me/.local/state/gryphus',
      socketDir: '/home/me/.local/state/gryphus/run',
    });
    expect(loadPaths({ XDG_STATE_HOME: '/s' }, () => '/home/me').stateDir).toBe('/s/gryphus');
  });

  it('are never below the working directory', () => {
    const unknown = () => {
      throw new Error('no such user');
    };
    for (const home of [() => '', () => 'relative', unknown]) {
      expect(() => loadPaths({}, home)).toThrow(expect.objectContaining({ code: 'bad-config' }));
      expect(loadPaths({ GRYPHUS_HOME: '/g' }, home).stateDir).toBe('/g/state');
    }
  });

  it('keep sockets in a short directory of their own where the state directory is deep', () => {
    const deep = `/${'d'.repeat(120)}`;
    expect(loadPaths({ GRYPHUS_HOME: deep, XDG_RUNTIME_DIR: '/run/user/7' }).socketDir).toMatch(
      /^\/run\/user\/7\/gryphus-\w{12}$/,
    );
    expect(loadPaths({ GRYPHUS_HOME: deep }).socketDir.length).toBeLessThan(60);
    expect(loadPaths({ GRYPHUS_HOME: deep }).socketDir).not.toBe(loadPaths({ GRYPHUS_HOME: `${deep}2` }).socketDir);
  });

  it('are refused where GRYPHUS_HOME is a file', () => {
    expect(() => loadPaths({ GRYPHUS_HOME: import.meta.filename })).toThrow('which is not a directory');
  });

  it('are made for their owner alone, and refused where others could enter', () => {
    const home = mkdtempSync(join(tmpdir(), 'gry-'));
    const paths = loadPaths({ GRYPHUS_HOME: home });
    try {
      ensureStateDirs(paths);
      ensureStateDirs(paths);
      expect(statSync(paths.socketDir).mode & 0o777).toBe(0o700);
      chmodSync(paths.logDir, 0o755);
      expect(() => ensureStateDirs(paths)).toThrow(expect.objectContaining({ code: 'not-permitted' }));
      rmSync(paths.logDir, { recursive: true });
      mkdirSync(join(home, 'else'));
      symlinkSync(join(home, 'else'), paths.logDir);
      expect(() => ensureStateDirs(paths)).toThrow('not a directory of yours');
    } finally {
      rmSync(home, { recursive: true });
    }
  });
});
