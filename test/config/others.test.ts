import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadCredential } from '../../src/config/credentials.ts';
import { loadPaths, type Paths } from '../../src/config/paths.ts';
import { loadSettings } from '../../src/config/settings.ts';
import { loadSites } from '../../src/config/sites.ts';
import { TestAgent } from '../agent/agent.ts';
import { ordinaryUser } from '../sites/ordinary-user.ts';

let paths: Paths;
beforeEach(() => {
  paths = loadPaths({ GRYPHUS_HOME: mkdtempSync(join(tmpdir(), 'gry-')) });
  mkdirSync(paths.sitesDir);
  mkdirSync(join(paths.configDir, 'credentials'));
  writeFileSync(paths.configFile, 'owner = "me"\n');
  writeFileSync(join(paths.sitesDir, 'x.toml'), 'url = "ssh://x"\nprelude = "echo"\n');
  writeFileSync(join(paths.configDir, 'credentials/c.toml'), 'kind = "account"\nuntil = 2040-01-01\n');
});
afterEach(() => rmSync(paths.configDir, { recursive: true }));

const LOADS = {
  'config.toml': () => loadSettings(paths),
  'sites/x.toml': () => loadSites(paths),
  'credentials/c.toml': () => loadCredential(paths, 'c'),
} as const;

describe.each(Object.entries(LOADS))('%s', (name, load) => {
  const above = () => [
    paths.configDir,
    ...(name.includes('/') ? [join(paths.configDir, name, '..')] : []),
    join(paths.configDir, name),
  ];

  it('is read if no other user could have written it', async () => {
    for (const path of above()) chmodSync(path, path.endsWith('.toml') ? 0o644 : 0o755);
    await expect(load()).resolves.toBeDefined();
  });

  it('is refused if others may write to it or to its directory', async () => {
    for (const path of above()) {
      chmodSync(path, 0o777);
      await expect(load()).rejects.toMatchObject({
        code: 'not-permitted',
        message: `Others may write to ${path} (mode 0777), so it is not used.`,
        suggestions: [`Close it: chmod go-w ${path}`],
      });
      chmodSync(path, 0o755);
    }
    await expect(load()).resolves.toBeDefined();
  });

  it.skipIf(ordinaryUser() === undefined)("is refused if it or its directory is another user's", async () => {
    const { uid } = ordinaryUser() ?? { uid: 0 };
    for (const path of above()) {
      chownSync(path, uid, 0);
      await expect(load()).rejects.toMatchObject({
        code: 'not-permitted',
        message: `${path} belongs to another user (uid ${uid}), so it is not used.`,
      });
      chownSync(path, 0, 0);
    }
  });

  it.skipIf(ordinaryUser() === undefined)('may be written by a group only if nobody else is in it', async () => {
    const path = join(paths.configDir, name);
    chmodSync(path, 0o664);
    await expect(load()).resolves.toBeDefined();
    chownSync(path, 0, ordinaryUser()?.gid ?? 0);
    await expect(load()).rejects.toMatchObject({ code: 'not-permitted' });
  });
});

it('a command says so', async () => {
  const agent = new TestAgent();
  agent.config('owner = "me"\n');
  chmodSync(agent.home, 0o777);
  const { code, stderr } = await agent.run(['site', 'list']);
  expect(code).toBe(77);
  expect(stderr).toContain(`Others may write to ${agent.home}`);
  await agent.end();
});
