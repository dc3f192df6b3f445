import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { downloadEnv } from './download-env.ts';
import { copyTree, ROOT } from './package/packed.ts';
import { SLOW } from './slow.ts';

/** The site has packages of its own, which are only here if somebody has installed them, or if a registry is reached. */
function skipped(): boolean {
  if (!SLOW) return true;
  if (existsSync(join(ROOT, 'site/node_modules/.bin/vitepress'))) return false;
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: join(ROOT, 'site'),
    env: downloadEnv(),
    stdio: 'ignore',
  });
  if (status !== 0) process.stderr.write('The build of the documentation site is left out: npm ci in site/ failed.\n');
  return status !== 0;
}

describe.skipIf(skipped())('the documentation site', { timeout: 600_000 }, () => {
  let tree: string;
  beforeEach(() => {
    tree = mkdtempSync('/tmp/gsite-');
    copyTree(tree);
    symlinkSync(join(ROOT, 'site/node_modules'), join(tree, 'site/node_modules'));
  });
  afterEach(() => rmSync(tree, { recursive: true, force: true }));

  const build = () => spawnSync(process.execPath, [join(tree, 'site/build.mjs')], { cwd: tree, encoding: 'utf8' });
  const page = (name: string) => readFileSync(join(tree, 'site/dist', name), 'utf8');

  it('is built, with every page, the reference and the search, and no link leads nowhere', () => {
    const { status, stdout, stderr } = build();
    expect({ status, text: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, text: '' });
    expect(page('index.html')).toMatch(/<title>Gryphus/);
    expect(page('docs/five-minutes/slurm.html')).toContain('For Slurm users');
    expect(page('docs/api/classes/Gryphus.html')).toContain('submit');
    expect(existsSync(join(tree, 'site/dist/docs/cli/submit.html'))).toBe(true);
  });

  it('with a link that leads nowhere is not built, and the page is named', () => {
    writeFileSync(join(tree, 'docs/chirp.md'), '# Chirp\n\nSee [this](pool.md#no-such-heading).\n');
    const { status, stderr } = build();
    expect(stderr).toContain('broken link in docs/chirp.html: /docs/pool.html#no-such-heading');
    expect(status).toBe(1);
  });
});
