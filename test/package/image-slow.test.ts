import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bareRoot, skipWithoutBare } from '../sites/bare-root.ts';
import { SLOW } from '../slow.ts';
import { Packed, ROOT } from './packed.ts';

const onPath = (name: string) =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((dir) => join(dir, name))
    .find((path) => existsSync(path));

/** The image that the Dockerfile starts from, as it would come from a registry: Debian 12 with this Node, npm and `node`. */
function makeBase(dir: string): void {
  // It has devices.
  execFileSync('cp', ['-a', bareRoot(), dir]);
  const local = join(dir, 'usr/local');
  mkdirSync(join(local, 'lib/node_modules'), { recursive: true });
  copyFileSync(process.execPath, join(local, 'bin/node'));
  const npm = dirname(dirname(realpathSync(onPath('npm') ?? '')));
  cpSync(npm, join(local, 'lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
  execFileSync('chroot', [dir, 'sh', '-c', 'userdel -r me; useradd -m -s /bin/bash node'], { stdio: 'ignore' });
}

describe.skipIf(!SLOW || onPath('podman') === undefined || skipWithoutBare())(
  'the container image',
  { timeout: 900_000 },
  () => {
    let packed: Packed;
    let dir: string;
    let env: NodeJS.ProcessEnv;
    beforeAll(() => {
      packed = new Packed();
      dir = mkdtempSync('/tmp/gimage-');
      const store = `graphroot = "${dir}/store"\nrunroot = "${dir}/run"\n`;
      writeFileSync(join(dir, 'storage.conf'), `[storage]\ndriver = "vfs"\n${store}`);
      const limits = 'default_ulimits = ["nofile=1024:1024", "nproc=32768:32768"]\n';
      writeFileSync(join(dir, 'containers.conf'), `[engine]\nruntime = "runc"\n[containers]\n${limits}`);
      env = {
        ...process.env,
        CONTAINERS_STORAGE_CONF: join(dir, 'storage.conf'),
        CONTAINERS_CONF: join(dir, 'containers.conf'),
      };
    }, 600_000);
    afterAll(() => {
      podman('rm', '--all', '--force', '--time', '0');
      rmSync(dir, { recursive: true, force: true });
      packed.end();
    });

    function podman(...args: string[]) {
      const { status, stdout, stderr } = spawnSync('podman', args, { env, encoding: 'utf8' });
      return { status, stdout, stderr };
    }

    function ok(...args: string[]): string {
      const { status, stdout, stderr } = podman(...args);
      if (status !== 0) throw new Error(`podman ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
      return stdout;
    }

    it('is built from the package, starts as an ordinary user, runs a job without a network, and keeps its state', () => {
      makeBase(join(dir, 'base'));
      execFileSync('tar', ['-C', join(dir, 'base'), '-cf', join(dir, 'base.tar'), '.']);
      ok('import', '--quiet', join(dir, 'base.tar'), 'localhost/base:1');
      rmSync(join(dir, 'base'), { recursive: true });
      mkdirSync(join(dir, 'context'));
      copyFileSync(packed.tarball, join(dir, 'context/gryphus-0.0.0.tgz'));
      copyFileSync(join(ROOT, 'Dockerfile'), join(dir, 'context/Dockerfile'));
      const from = ['--build-arg', 'BASE=localhost/base:1', '--isolation', 'chroot', '--network', 'host'];
      ok('build', '--quiet', ...from, '-t', 'gryphus', join(dir, 'context'));

      const once = ['--network', 'none', '-v', 'state:/home/node'];
      ok('run', '-d', '--name', 'one', ...once, 'localhost/gryphus');
      const job = ['gryphus', 'run', '--', 'sh', '-c', 'echo "$(id -un)"'];
      expect(ok('exec', 'one', ...job)).toBe('node\n');
      expect(ok('exec', 'one', 'gryphus', 'history', '--json')).toMatch(/"ClusterId": *1\b/);
      ok('rm', '--force', '--time', '0', 'one');
      // Another container with the same volume: the queue and its history are there.
      expect(
        ok('run', '--rm', ...once, 'localhost/gryphus', 'sh', '-c', 'gryphus up >&2 && gryphus history --json'),
      ).toMatch(/"ClusterId": *1\b/);
    });
  },
);
