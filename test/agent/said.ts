import { execFile } from 'node:child_process';
import type { TestAgent } from './agent.ts';

export interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command in an agent's working directory as a user would, with these variables. */
export function call(
  agent: TestAgent,
  env: NodeJS.ProcessEnv,
  command: string,
  args: readonly string[],
  stdin = '',
): Promise<Said> {
  return new Promise((done) => {
    const child = execFile(
      command,
      args,
      { env: { ...agent.env, ...env }, cwd: agent.work },
      (error, stdout, stderr) => {
        done({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
      },
    );
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(stdin);
  });
}
