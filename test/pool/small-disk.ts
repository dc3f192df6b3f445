import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** File systems of a few megabytes can be created here; if not, a line says so. */
export const CAN_MOUNT =
  spawnSync('sh', ['-c', 'd=$(mktemp -d) && mount -t tmpfs none "$d" && umount "$d" && rmdir "$d"']).status === 0;
if (!CAN_MOUNT) process.stderr.write('Tests with a full disk are left out: no file system can be mounted here.\n');

/** A small disk of its own. */
export interface SmallDisk {
  readonly dir: string;
  /** Uses up all but this many KB of the free space. */
  fill(leave?: number): void;
  /** Frees what `fill` used. */
  free(): void;
  unmount(): void;
}

export function smallDisk(dir: string, kb: number): SmallDisk {
  mkdirSync(dir, { recursive: true });
  run('mount', '-t', 'tmpfs', '-o', `size=${kb}k,mode=0700`, 'none', dir);
  const fat = join(dir, 'fat');
  return {
    dir,
    fill(leave = 0) {
      rmSync(fat, { force: true });
      spawnSync('dd', ['if=/dev/zero', `of=${fat}`, 'bs=4k'], { stdio: 'ignore' });
      if (leave > 0) run('truncate', '-s', `-${leave}K`, fat);
    },
    free: () => rmSync(fat, { force: true }),
    unmount: () => run('umount', '-l', dir),
  };
}

function run(command: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
}
