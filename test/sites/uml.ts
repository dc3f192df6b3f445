import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shellWords } from '../../src/util/shell-quote.ts';

export function skipWithoutUml(): boolean {
  return process.getuid?.() !== 0 || spawnSync('linux.uml', ['--version']).status !== 0;
}

const ENDED = 'the command ended with';

/**
 * Runs a command as root under its own kernel, user-mode Linux: on this machine's files, which it may write, with its
 * own /run and processes, and cgroup v2 only.
 */
export function underOwnKernel(
  command: readonly string[],
  options: { readonly cwd: string; readonly timeoutMs: number },
): Promise<{ readonly status: number | undefined; readonly text: string }> {
  const dir = mkdtempSync('/var/tmp/gry-uml-');
  const init = join(dir, 'init');
  const lines = [
    '#!/bin/sh',
    'export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run LANG=C.UTF-8',
    'mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t tmpfs tmpfs /run; mount -t cgroup2 cgroup2 /sys/fs/cgroup',
    'ip link set lo up',
    `cd ${shellWords([options.cwd])} && ${shellWords(command)} </dev/null`,
    `echo "${ENDED} $?."`,
    'sync; echo o >/proc/sysrq-trigger; sleep 60',
  ];
  writeFileSync(init, `${lines.join('\n')}\n`, { mode: 0o755 });
  const kernel = ['rootfstype=hostfs', 'rootflags=/', 'rw', 'mem=1500M', 'quiet', `init=${init}`];
  const args = [...kernel, 'con=null', 'con0=null,fd:1', `uml_dir=${dir}`, 'umid=it'];
  return new Promise((resolve, reject) => {
    const child = spawn('linux.uml', args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    let text = '';
    const end = () => {
      clearTimeout(timer);
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It no longer exists.
      }
    };
    const timer = setTimeout(end, options.timeoutMs);
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        if (new RegExp(`${ENDED} \\d+\\.`).test(text)) end();
      });
    child.once('error', reject);
    child.once('close', () => {
      end();
      rmSync(dir, { recursive: true, force: true });
      const status = new RegExp(`${ENDED} (\\d+)\\.`).exec(text)?.[1];
      resolve({ status: status === undefined ? undefined : Number(status), text });
    });
  });
}
