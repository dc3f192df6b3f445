import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadPaths, type Paths } from '../../src/config/paths.ts';
import { loadSettings, SETTINGS } from '../../src/config/settings.ts';
import { changingAd } from '../../src/pool/host/machine.ts';
import { NOTHING, nowTexts } from '../../src/pool/owner/machine-attrs.ts';
import { sizeTexts } from '../../src/pool/wire/ads.ts';
import { NOTHING as NO_SIZE } from '../../src/pool/wire/slots.ts';

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
    [
      '[pool]\nsuspend = "KeyboardIdle <"\n',
      `line 2: 'pool.suspend' must be a ClassAd expression, not "KeyboardIdle <": column 15: expected `,
      'delete the line',
    ],
    [
      '[pool.attributes]\nA = 1\nB = "a +"\n',
      `line 3: 'pool.attributes.B' must be a ClassAd expression, not "a +": column 4: expected `,
      'delete the line',
    ],
    ['[pool]\nattributes = { A = [1] }\n', "line 2: 'pool.attributes.A' must be a ClassAd expression", 'delete'],
    ['[pool.attributes]\n"a b" = 1\n', "'pool.attributes.a b' is not the name of an attribute", 'delete'],
    ['[pool.attributes]\nSuspend = "true"\n', 'is an expression of the policy, which has a key of its own', 'delete'],
    ['[pool.resources]\nx = 1\nlicenses = -1\n', "line 3: 'pool.resources.licenses' must be a number of", 'delete'],
    ['[pool.resources]\nmemory = 1\n', "line 2: 'pool.resources.memory' is an attribute of every machine", 'delete'],
    ['[pool]\ngroup_names = ["Bio"]\ngroup_quota = { bio = 1, chem = 2 }\n', 'line 3: ', 'Add it there'],
    ['[pool.group_quota_dynamic]\nchem = 0.5\n', "line 2: 'pool.group_quota_dynamic' names chem", 'Add it there'],
    ['[pool]\nmemory = 2048\n', "line 2: 'pool.memory' must be a size of at least 1M, like ", 'delete'],
    ['submit.default_memory = "300"\n', "'submit.default_memory' must be a size of at least 1M, like ", '"128M"'],
    ['pool.polling_interval = "0s"\n', "'pool.polling_interval' must be a time of at least 0.1 s", '"5s"'],
  ])('refuses %j with the line and the remedy', async (text, message, remedy) => {
    config(text);
    await expect(loadSettings(paths)).rejects.toMatchObject({
      code: 'bad-config',
      message: expect.stringContaining(message),
      suggestions: [expect.stringContaining(remedy)],
    });
    await expect(loadSettings(paths)).rejects.toThrow(paths.configFile);
  });

  it('says nothing of a machine that its worker finds out', async () => {
    const found = [
      ...Object.keys(nowTexts(NOTHING)),
      ...Object.keys(sizeTexts({}, NO_SIZE)),
      ...Object.keys(changingAd(0, undefined)),
      'Name',
      'TotalCpus',
      'MachineResources',
      'GryphusSite',
    ];
    expect(found.length).toBeGreaterThan(20);
    for (const name of found) {
      config(`[pool.attributes]\n${name} = 1\n`);
      await expect(loadSettings(paths), name).rejects.toThrow(`'pool.attributes.${name}' is found out by the worker`);
    }
  });
});
