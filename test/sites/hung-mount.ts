import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';

export interface HungMount {
  /** Every call on what is below it waits. */
  readonly dir: string;
  /** Those calls fail now, and it is an ordinary directory again. */
  readonly remedy: () => void;
}

/** Mounting takes root, and a kernel with FUSE. */
export const canHang =
  process.getuid?.() === 0 && spawnSync('sh', ['-c', 'exec 7<>/dev/fuse'], { stdio: 'ignore' }).status === 0;

/** A file system whose server never answers, as a network file system whose server is away. */
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
    // The end of its server ends the calls that wait for it.
    holder.kill('SIGKILL');
    execFileSync('umount', ['-l', dir]);
  };
  return { dir, remedy };
}

export function removeHung({ dir, remedy }: HungMount): void {
  remedy();
  rmSync(dir, { recursive: true, force: true });
}
