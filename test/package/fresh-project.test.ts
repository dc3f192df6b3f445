import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';
import { downloadEnv } from '../download-env.ts';
import { readmeBlocks } from '../readme.ts';
import { removeTree } from '../remove-tree.ts';
import { startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { npmOk, Packed, ROOT, sizesOf } from './packed.ts';

const MB = 1_000_000;
/** All that an installation brings; its 1,450 files take a quarter more in a disk's blocks of 4 kB. */
const LIMIT = 15 * MB;
const LIMIT_OF_BLOCKS = 18 * MB;
const NODES = ['20.20.2', '22', '24', '26'];
const blocks = [...readmeBlocks('ts', 'docs/library.md').values()].flat();

/** Slow, and only where packages can be fetched. */
function skipped(): boolean {
  if (!SLOW) return true;
  if (spawnSync('npm', ['ping'], { stdio: 'ignore', env: downloadEnv() }).status === 0) return false;
  process.stderr.write('Tests of the installed package are left out: the package registry is not reachable.\n');
  return true;
}

describe.skipIf(skipped())('a fresh project with the packed package', { timeout: 600_000 }, () => {
  let dir: string;
  let agent: TestAgent;
  let gryphus: string;
  beforeAll(() => {
    dir = mkdtempSync('/tmp/gpk-');
    const packed = new Packed();
    writeFileSync(join(dir, 'package.json'), '{ "type": "module" }\n');
    // It needs no other package: no registry is asked.
    npmOk(dir, 'install', '--offline', '--no-audit', '--no-fund', packed.tarball);
    packed.end();
    gryphus = join(dir, 'node_modules/gryphus/dist/bin/gryphus.js');
    agent = new TestAgent({}, gryphus);
  }, 600_000);
  afterAll(async () => {
    await agent.end();
    await removeTree(dir);
  });

  function run(program: string, args: readonly string[]) {
    const { status, stdout, stderr } = spawnSync(program, args, { cwd: dir, env: agent.env, encoding: 'utf8' });
    return { status, stdout, stderr };
  }

  it('is small, and needs no compiler', async () => {
    const { bytes, blocks } = sizesOf(join(dir, 'node_modules'));
    expect(bytes).toBeLessThan(LIMIT);
    expect(blocks).toBeLessThan(LIMIT_OF_BLOCKS);
    expect(await agent.ok('--version')).toMatch(/^gryphus\/\d/);
    expect(await agent.ok('run', '--', 'echo', 'works')).toBe('works\n');
  });

  it('runs a job at a site over ssh, without a package of its own for it', async () => {
    const sshd = await startSshd();
    try {
      agent.site('far', { url: sshd.url, batch: 'fork' });
      const there = { env: { ...agent.env, HOME: sshd.clientHome } };
      await agent.ok('down');
      const { status, stdout, stderr } = spawnSync(gryphus, ['run', '--site', 'far', '--', 'echo', 'far away'], {
        ...there,
        cwd: agent.work,
        encoding: 'utf8',
      });
      expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'far away\n', stderr: '' });
      expect(spawnSync(gryphus, ['down'], there).status).toBe(0);
    } finally {
      await sshd.stop();
    }
  });

  it('serves its page, and sends its worker', async () => {
    const [address = ''] = /http:\S+/.exec(await agent.ok('web', '--no-open')) ?? [];
    const opened = await fetch(address, { redirect: 'manual' });
    const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
    const html = await (await fetch(new URL('/', address), { headers: { cookie } })).text();
    const [, program = ''] = /<script[^>]* src="([^"]+)"/.exec(html) ?? [];
    const answer = await fetch(new URL(program, address), { headers: { cookie } });
    expect(answer.status).toBe(200);
    expect((await answer.text()).length).toBeGreaterThan(100_000);
    await agent.ok('web', '--stop');
  });

  it('compiles the examples of the page against the types alone', () => {
    expect(blocks.length).toBeGreaterThan(3);
    mkdirSync(join(dir, 'node_modules/@types'), { recursive: true });
    for (const name of ['@types/node', 'undici-types'])
      symlinkSync(join(ROOT, 'node_modules', name), join(dir, 'node_modules', name));
    const files = blocks.map((text, at) => {
      writeFileSync(join(dir, `example${at}.ts`), text);
      return `example${at}.ts`;
    });
    // What comes from a type of Zod's is no `any`.
    writeFileSync(
      join(dir, 'typed.ts'),
      `import type { PoolOwner } from 'gryphus';\nexport const one: PoolOwner = 1;\n`,
    );
    const options = ['--noEmit', '--strict', '--target', 'es2023', '--module', 'nodenext', '--types', 'node'];
    const tsc = join(ROOT, 'node_modules/.bin/tsc');
    expect(run(tsc, [...options, ...files])).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(run(tsc, [...options, 'typed.ts']).stdout).toMatch(/typed\.ts.*error TS2322/);
  });

  it('runs the examples of the page', () => {
    const said = blocks.map((text, at) => {
      // The examples have no types in their text.
      writeFileSync(join(dir, `run${at}.mjs`), text);
      const { status, stdout, stderr } = run(process.execPath, [`run${at}.mjs`]);
      expect({ status, stderr }, text).toEqual({ status: 0, stderr: '' });
      return stdout;
    });
    expect(said[0]).toBe('0\n');
    expect(said[1]).toMatch(/(\d+\.\d has ended\n){3}/);
    expect(said[2]?.split('\n').toSorted().join(' ').trim()).toBe('1 1 2 4 3 9');
    expect(said[3]).toMatch(/^bad-input .*queue 0/);
  });

  it.each(NODES)('works in Node %s, imported and required', (version) => {
    const place = join(dir, `node-${version}`);
    mkdirSync(place);
    npmOk(place, 'install', '--prefix', place, '--no-audit', '--no-fund', `node-linux-${process.arch}@${version}`);
    const node = join(place, `node_modules/node-linux-${process.arch}/bin/node`);
    const use = `(async () => {
      const gryphus = await Gryphus.open();
      const { cluster } = await gryphus.submit({ text: 'executable = /bin/true\\ntransfer_executable = false\\nqueue' });
      console.log(await gryphus.wait({ clusters: [cluster] }));
      await gryphus.close();
    })();\n`;
    writeFileSync(join(dir, 'own.mjs'), `import { Gryphus } from 'gryphus';\n${use}`);
    writeFileSync(join(dir, 'own.cjs'), `const { Gryphus } = require('gryphus');\n${use}`);
    for (const file of ['own.mjs', 'own.cjs'])
      expect(run(node, [file]), file).toEqual({ status: 0, stdout: 'true\n', stderr: '' });
  });
});
