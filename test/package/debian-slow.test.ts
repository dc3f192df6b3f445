import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BareMachine, startMachine } from '../sites/bare-machine.ts';
import { skipWithoutBare } from '../sites/bare-root.ts';
import { SLOW } from '../slow.ts';
import { Packed, ROOT } from './packed.ts';

const SCRIPT = join(ROOT, 'scripts/debian.mjs');
const make = (...words: string[]) => spawnSync(process.execPath, [SCRIPT, ...words], { encoding: 'utf8' });

it.each([
  [[], 'one package of `npm pack` is needed: node scripts/debian.mjs gryphus-VERSION.tgz'],
  [['no such.tgz'], 'there is no no such.tgz'],
  [[join(ROOT, 'package.json'), '--node', 'no/node'], 'there is no no/node'],
  [[join(ROOT, 'package.json')], 'tar: '],
  [['--nod', 'x'], "Unknown option '--nod'"],
])('the script of the Debian package refuses %j in one line', (words, said) => {
  const { status, stdout, stderr } = make(...words);
  expect(stderr).toContain(`debian.mjs: ${said}`);
  expect({ status, stdout }).toEqual({ status: 65, stdout: '' });
});

/** The machine has Debian 12's own Node in PATH, which is too old: the package must use the one in it. */
describe.skipIf(!SLOW || skipWithoutBare())('the Debian package on a Debian 12', { timeout: 600_000 }, () => {
  let packed: Packed;
  let machine: BareMachine;
  beforeAll(async () => {
    packed = new Packed();
    machine = await startMachine({ oldNode: true });
  }, 600_000);
  afterAll(async () => {
    await machine.stop();
    packed.end();
  });

  async function ok(user: 'root' | 'me', script: string): Promise<string> {
    const { exit, text } = await machine.run(user, script);
    expect({ exit, text }).toMatchObject({ exit: 0 });
    return text;
  }

  it('is made, installed by apt with what it needs, starts, runs a job, and is removed', async () => {
    const { status, stdout, stderr } = make(packed.tarball, '--node', process.execPath, '--out', packed.dir);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const file = stdout.trim();
    expect(basename(file)).toMatch(/^gryphus_\d+\.\d+\.\d+_[a-z0-9]+\.deb$/);
    copyFileSync(file, join(machine.root, 'root/gryphus.deb'));

    // The first process of this machine starts no services.
    await ok('root', `printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d`);
    await ok(
      'root',
      'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends /root/gryphus.deb',
    );
    expect(await ok('me', 'node --version')).toMatch(/^v18\./);
    expect(await ok('me', 'gryphus --version')).toContain(process.version);
    expect(await ok('me', 'gryphus run -- sh -c "echo from \\$0" "a job"')).toBe('from a job\n');
    expect(await ok('me', 'gryphus compat install bin && bin/sbatch --parsable --wrap "echo out"')).toMatch(/^\d+$/m);
    expect(await ok('me', 'gryphus web --no-open && gryphus web --stop')).toMatch(/http:\/\/127\.0\.0\.1/);
    expect(
      await ok('me', 'ls /usr/share/man/man1/gryphus-submit.1.gz /usr/share/bash-completion/completions/gryphus'),
    ).toMatch(/^[^:]+$/);
    await ok('me', 'gryphus down');
    await ok('root', 'apt-get -qq remove -y gryphus');
    expect(await ok('root', 'find / -xdev -path /home -prune -o -path /proc -prune -o -name "*gryphus*" -print')).toBe(
      '/root/gryphus.deb\n',
    );
  });

  it('without a Node in it, depends on one that this Debian does not have', async () => {
    const { stdout } = make(packed.tarball, '--out', packed.dir);
    const fields = execFileSync('dpkg-deb', ['--field', stdout.trim(), 'Depends'], { encoding: 'utf8' });
    expect(fields).toContain('nodejs (>= 20.19)');
    copyFileSync(stdout.trim(), join(machine.root, 'root/thin.deb'));
    const { exit, text } = await machine.run('root', 'apt-get install -y /root/thin.deb');
    expect(exit).toBe(100);
    expect(text).toMatch(/gryphus : Depends: nodejs \(>= 20\.19\)/);
  });
});
