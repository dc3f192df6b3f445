import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { CLI, type Ran, type TestAgent } from './agent.ts';

export interface Machine {
  readonly host: string;
  readonly boot: string;
}

/** Whether this process may give others a name and a boot of their own. */
export const MAY_BE_ANOTHER = process.getuid?.() === 0;

/** `gryphus WORDS` as on another machine, or after a reboot of this one: its processes see another host name and boot. */
export function runOn(agent: TestAgent, { host, boot }: Machine, ...words: readonly string[]): Promise<Ran> {
  const file = join(agent.dir, `boot-${boot}`);
  writeFileSync(file, `${boot}\n`);
  const script = 'hostname "$1" && mount --bind "$0" /proc/sys/kernel/random/boot_id && shift && exec "$@"';
  const args = ['--uts', '--mount', 'sh', '-c', script, file, host, process.execPath, CLI, ...words];
  return new Promise((resolve, reject) => {
    const child = spawn('unshare', args, { env: agent.env, cwd: agent.work, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}
