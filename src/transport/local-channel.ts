import { type ChildProcess, spawn } from 'node:child_process';
import type { Channel, ChannelEnd } from './contract.ts';

/** Starts a program as a channel. `kill` ends its whole process group. */
export function spawnChannel(
  program: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Channel> {
  const child = spawn(program, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('spawn', () => {
      child.off('error', reject);
      // Without a listener, a failed kill would crash this process.
      child.on('error', () => undefined);
      resolve({
        stdin: child.stdin,
        stdout: child.stdout,
        stderr: child.stderr,
        closed: end(child),
        kill: () => killGroup(child),
      });
    });
  });
}

function end(child: ChildProcess): Promise<ChannelEnd> {
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      resolve(signal === null ? { kind: 'exited', code: code ?? 0 } : { kind: 'signaled', signal: signal.slice(3) });
    });
  });
}

function killGroup(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const send = (signal: NodeJS.Signals): void => {
    try {
      process.kill(-pid, signal);
    } catch {
      // The group has already gone.
    }
  };
  send('SIGTERM');
  const timer = setTimeout(() => send('SIGKILL'), 1000).unref();
  child.once('close', () => clearTimeout(timer));
}
