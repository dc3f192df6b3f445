import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import type { TestAgent } from './agent.ts';

/** Kills the processes of this agent whose command line contains these words. */
export function killMatching(message: string, agent: TestAgent, remoteHome?: string): void {
  for (const pid of processesOf(message, agent, remoteHome)) kill(pid);
}

/** Processes of this agent (other agents may run on this machine) whose command line contains these words. */
export function processesOf(message: string, agent: TestAgent, remoteHome?: string): number[] {
  let found = '';
  try {
    found = execFileSync('pgrep', ['-f', message], { encoding: 'utf8' });
  } catch {
    return [];
  }
  return found
    .trim()
    .split('\n')
    .map(Number)
    .filter((pid) => {
      const environment = environmentOf(pid);
      return (
        environment.includes(agent.dir) || (remoteHome !== undefined && environment.includes(`HOME=${remoteHome}`))
      );
    });
}

/** All processes that run for an agent, found by their environment and command line; including a job's own program. */
export function processes(agent: TestAgent): { readonly pid: number; readonly what: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
        const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
        const own = `${command}\0${environment}`.includes(agent.dir) && command !== '';
        return own ? [{ pid: Number(pid), what: command }] : [];
      } catch {
        return [];
      }
    });
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return '';
  }
}

/** SIGKILL; does nothing if the process has already exited. */
export function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It had already exited.
  }
}

/** Processor time of all processes that run for an agent and of the children that they have waited for, in seconds. */
export function secondsOf(agent: TestAgent): number {
  const ticks = processes(agent).map(({ pid }) => {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ');
      return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    } catch {
      return 0; // It has ended.
    }
  });
  return ticks.reduce((sum, one) => sum + one, 0) / 100;
}
