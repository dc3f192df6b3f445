import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';

export interface HungMount {
  /** Every call on a path below it blocks. */
  readonly dir: string;
  /** Those calls now fail, and it is an ordinary directory again. */
  readonly remedy: () => void;
}

/** Mounting needs root, and a kernel with FUSE. */
export const canHang =
  process.getuid?.() === 0 && spawnSync('sh', ['-c', 'exec 7<>/dev/fuse'], { stdio: 'ignore' }).status === 0;

/** A file system whose server never answers, like a network file system whose server is down. */
export async function hungMount(): Promise<HungMount> {
  const dir = mkdtempSync('/tmp/gq-hung-');
  const script = `exec 7<>/dev/fuse
mount -i -t fuse -o fd=7,rootmode=40000,user_id=0,group_id=0 none "$1" || exit 1
echo mounted; read -r _`;
  const holder: ChildProcess = spawn('bash', ['-c', script, 'hung', dir], { stdio: ['pipe', 'pipe', 'inherit'] });
  await new Promise<void>((resolve, reject) => {
    holder.stdout?.once('data', () => resolve());
    holder.once('exit', (code) => reject(new Error(`mount: exit status ${code}`)));
  });
  let mounted = true;
  const remedy = (): void => {
    if (!mounted) return;
    mounted = false;
    // When its server exits, the blocked calls end.
    holder.kill('SIGKILL');
    execFileSync('umount', ['-l', dir]);
  };
  return { dir, remedy };
}

export function removeHung({ dir, remedy }: HungMount): void {
  remedy();
  rmSync(dir, { recursive: true, force: true });
}
