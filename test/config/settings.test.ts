import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadPaths, type Paths } from '../../src/config/paths.ts';
import { loadSettings, SETTINGS } from '../../src/config/settings.ts';

let paths: Paths;
beforeEach(() => {
  paths = loadPaths({ GRYPHUS_HOME: mkdtempSync(join(tmpdir(), 'gry-')) });
});
afterEach(() => rmSync(paths.configDir, { recursive: true }));

function config(text: string): void {
  writeFileSync(paths.configFile, text);
}

describe('config.toml', () => {
  it('is optional, and every default is a value of its own kind', async () => {
    const settings = await loadSettings(paths);
    for (const [key, { preset }] of Object.entries(SETTINGS)) {
      expect(settings[key as keyof typeof SETTINGS] === undefined).toBe(preset === undefined);
    }
    expect(settings['scheduler.periodic_interval']).toBe(60);
    expect(settings['alarms.credential']).toEqual([86_400, 21_600, 3600]);
  });

  it('gives times in seconds and sizes in bytes, nested or dotted', async () => {
    config('owner = "ä b"\nhistory.keep_for = "1h30m"\n[cache]\nsite_size = "1.5G"\n[notify.smtp]\nport = 25\n');
    expect(await loadSettings(paths)).toMatchObject({
      owner: 'ä b',
      'history.keep_for': 5400,
      'cache.site_size': 1_610_612_736,
      'notify.smtp.port': 25,
    });
  });

  it.each([
    ['x = \n', 'line 1, column 5', 'quotes'],
    ['\n\nownr = "me"\n', "line 3: unknown key 'ownr'", "'owner'"],
    ['[notify.smtp]\nhst = "a"\n', "line 2: unknown key 'notify.smtp.hst'", "'notify.smtp.host'"],
    [
      '[notify]\nproblems = true\nsmtp.port = 0\n',
      "line 3: 'notify.smtp.port' must be a whole number from 1 to 65535, not 0",
      '587',
    ],
    ['history.keep_for = "soon"\n', "line 1: 'history.keep_for' must be a time", '"365d"'],
    ['user_log.format = ["ISO"]\n', "line 1: 'user_log.format' must be a list of", 'ISO_DATE'],
    ['notify = "me@x"\n', "line 1: unknown key 'notify'", 'gryphus config'],
    ['[notify.method]\na = 1\n', "'notify.method' must be one of", 'sendmail'],
  ])('refuses %j with the line and the remedy', async (text, message, remedy) => {
    config(text);
    await expect(loadSettings(paths)).rejects.toMatchObject({
      code: 'bad-config',
      message: expect.stringContaining(message),
      suggestions: [expect.stringContaining(remedy)],
    });
    await expect(loadSettings(paths)).rejects.toThrow(paths.configFile);
  });
});
