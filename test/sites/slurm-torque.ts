import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Slurm, skipWithoutSlurm, startSlurm } from './slurm.ts';

const PLACE = resolve(import.meta.dirname, '../../node_modules/.cache/slurm-torque');

/**
 * Slurm's own qsub, qstat and qdel in Torque's style. Their package (slurm-wlm-torque) conflicts with Grid Engine's, so
 * it is unpacked separately, once; its Perl libraries are ordinary packages.
 */
export function unpackTorque(): string | undefined {
  const bin = join(PLACE, 'bin');
  if (existsSync(join(bin, 'qsub'))) return bin;
  const dir = mkdtempSync(join(tmpdir(), 'gtq-'));
  try {
    const quiet = { cwd: dir, stdio: 'ignore' } as const;
    execFileSync('apt-get', ['download', '-q', 'slurm-wlm-torque'], quiet);
    execFileSync('sh', ['-c', 'dpkg -x slurm-wlm-torque_*.deb x'], quiet);
    mkdirSync(PLACE, { recursive: true });
    cpSync(join(dir, 'x/usr/bin'), `${bin}.new`, { recursive: true });
    // Its qsub calls the sbatch beside it.
    symlinkSync(
      execFileSync('sh', ['-c', 'command -v sbatch'], { encoding: 'utf8' }).trim(),
      join(`${bin}.new`, 'sbatch'),
    );
    renameSync(`${bin}.new`, bin);
    return bin;
  } catch {
    return undefined;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The module requests a configuration as soon as it is loaded. */
const FINDS_SLURM = 'exit !grep { -e "$_/Slurm.pm" } @INC';

/** For `describe.skipIf`: prints a line if the commands are not available; with CI=true it is an error instead. */
export function skipWithoutTorque(): boolean {
  if (skipWithoutSlurm()) return true;
  if (unpackTorque() !== undefined && succeeds('perl', ['-MSwitch', '-e', FINDS_SLURM])) return false;
  const missing =
    'Torque commands: slurm-wlm-torque cannot be downloaded, or libslurm-perl, libswitch-perl are missing';
  if (process.env['CI'] === 'true') throw new Error(missing);
  process.stderr.write(`Tests with Torque commands are left out. ${missing}\n`);
  return true;
}

/** A private Slurm with Torque's commands first in PATH. */
export async function startTorque(): Promise<Slurm> {
  const bin = unpackTorque();
  if (bin === undefined) throw new Error('slurm-wlm-torque is not there');
  const slurm = await startSlurm({ nodes: 2, cpus: 4 });
  const env = { ...slurm.env, PATH: `${bin}:${slurm.env['PATH'] ?? ''}` };
  const run = (command: string, ...args: string[]): string =>
    execFileSync(command, args, {
      encoding: 'utf8',
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  return { ...slurm, env, run };
}

function succeeds(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
