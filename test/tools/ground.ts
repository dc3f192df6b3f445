import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { TestAgent } from '../agent/agent.ts';
import { SLOW } from '../slow.ts';

/** For `describe.skipIf`: these tools are large packages, so their tests run in the slow lane only. */
export function skipWithout(...programs: readonly string[]): boolean {
  return !SLOW || !programs.every((program) => existsSync(`/usr/bin/${program}`));
}

/** An agent whose commands for others come first in PATH. */
export async function agentForTools(): Promise<TestAgent> {
  const agent = new TestAgent();
  await agent.ok('compat', 'install', join(agent.dir, 'bin'));
  agent.env['PATH'] = `${join(agent.dir, 'bin')}:${process.env['PATH'] ?? ''}`;
  agent.env['USER'] = userInfo().username;
  return agent;
}

/** A tool that runs; `said` is all that it has written so far. */
export interface Tool {
  readonly said: () => string;
  /** Its exit status. */
  readonly ended: Promise<number | null>;
  interrupt(): void;
}

/** Starts a tool in the agent's working directory, in a group of its own as at a terminal. */
export function startTool(agent: TestAgent, command: string, args: readonly string[]): Tool {
  const child = spawn(command, args, { cwd: agent.work, env: agent.env, detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text));
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  // A tool that is left over must not outlive the test.
  process.once('exit', () => child.kill('SIGKILL'));
  return {
    said: () => said,
    ended,
    interrupt: () => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
    },
  };
}
