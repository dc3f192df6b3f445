import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';

/**
 * A directory with `vmlinuz` and a static `busybox` for arm64, such as those of Debian's packages linux-image-arm64 and
 * busybox-static: with `dpkg --add-architecture arm64`, `apt-get download PACKAGE:arm64`, and `dpkg-deb -x`.
 */
const GUEST = process.env['GRYPHUS_ARM64'] ?? '';
const TOOLS = ['qemu-system-aarch64', 'aarch64-linux-gnu-gcc', 'cpio'];
const isThere = (tool: string) => spawnSync('sh', ['-c', `command -v ${tool}`]).status === 0;
const IS_POSSIBLE = SLOW && existsSync(join(GUEST, 'vmlinuz')) && TOOLS.every(isThere);
/** What all-kinds.c holds. */
const LOCKS = 'FLOCK WRITE 0 EOF;OFDLCK WRITE 1 2;POSIX WRITE 5 6;';
const MODELS = ['max,pauth-impdef=on', 'cortex-a72'];

describe.skipIf(!IS_POSSIBLE)('the programs of native/ for arm64, in a virtual machine', () => {
  const root = mkdtempSync(join(tmpdir(), 'gryphus-arm64-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const native = join(import.meta.dirname, '../../native');
  const guest = join(root, 'guest');
  const bin = join(guest, 'bin');
  const built = (program: string, ...more: readonly string[]) => {
    const from = join(import.meta.dirname, `${program}.c`);
    execFileSync('aarch64-linux-gnu-gcc', [
      '-O2',
      '-static',
      '-mbranch-protection=standard',
      ...more,
      '-o',
      join(bin, program),
      from,
      '-lpthread',
    ]);
  };

  it.each(MODELS)(
    'checkpoint and restore programs, and answer calls (%s)',
    (model) => {
      const hasVectors = model.startsWith('max');
      for (const name of ['bin', 'proc', 'dev', 'tmp']) mkdirSync(join(guest, name), { recursive: true });
      const CC = 'CC=aarch64-linux-gnu-gcc';
      for (const from of [native, join(native, 'remote-io')])
        execFileSync('make', ['-s', '-C', from, CC, `OUT=${bin}`]);
      built('threads');
      built('interrupted');
      built('all-kinds');
      if (hasVectors) built('vectors', '-march=armv8.2-a+sve');
      else writeFileSync(join(bin, 'vectors'), '#!/bin/sh\necho no vectors\n', { mode: 0o755 });
      copyFileSync(join(GUEST, 'busybox'), join(bin, 'busybox'));
      copyFileSync(join(import.meta.dirname, 'arm64-guest.sh'), join(guest, 'init'));
      chmodSync(join(guest, 'init'), 0o755);
      execFileSync('sh', ['-c', `cd '${guest}' && find . | cpio -o -H newc 2>/dev/null >../files`]);
      const words = [
        '-M',
        'virt',
        '-cpu',
        model,
        '-smp',
        '2',
        '-m',
        '1024',
        '-nic',
        'none',
        '-nographic',
        '-no-reboot',
      ];
      const boot = ['-kernel', join(GUEST, 'vmlinuz'), '-initrd', join(root, 'files')];
      const append = ['-append', 'console=ttyAMA0 quiet panic=-1'];
      const { stdout } = spawnSync('qemu-system-aarch64', [...words, ...boot, ...append], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'inherit'],
        timeout: 1_500_000,
      });
      const said = new Map(
        [...stdout.matchAll(/^GUEST ([^:\n]+): (.*?)\r?$/gm)].map(([, name = '', what = '']) => [name, what]),
      );
      process.stderr.write(`${[...said].map(([name, what]) => `${name}: ${what}`).join('\n')}\n`);
      const vectors = hasVectors ? '2000 rounds, 0 wrong' : 'no vectors';
      expect(Object.fromEntries(said)).toMatchObject({
        probe: 'Linux aarch64',
        'remote-io': 'works',
        here: '0 0 0 0 0 slept',
        elsewhere: '0 0 0 0 0 slept',
        signal: '0 woken: -1 1',
        'signal--kill': '0 woken: -1 1',
        vectors: `0 ${vectors}`,
        'vectors.moved': expect.stringMatching(`^0 moves \\d+ ${vectors}`),
        threads: expect.stringMatching(/^7 moves [1-5] /),
        'threads.out': said.get('alone'),
        children: expect.stringMatching(`^5 moves [1-4] ${said.get('seq')}`),
        'locks before': LOCKS,
        locks: LOCKS,
      });
    },
    1_800_000,
  );
});
