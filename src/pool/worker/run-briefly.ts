import { spawn } from 'node:child_process';

export interface BriefEnd {
  /** As in a shell: 128 plus the signal's number if a signal ended it, 127 if it could not be started. */
  readonly code: number;
  readonly stdout: string;
  /** The last line of its standard error. */
  readonly message: string;
}

const MOST = 64 << 10;
/** The process ids of running programs, each the leader of a process group. */
const running = new Set<number>();

export interface BriefOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  /** It starts a container, which would stay for ever if it were killed in between: it outlives its caller. */
  readonly container?: boolean;
}

/** Runs a program for its output. After the timeout, it is killed with everything that it started. */
export function runBriefly(argv: readonly [string, ...string[]], options: BriefOptions): Promise<BriefEnd> {
  const [program, ...args] = argv;
  return new Promise((resolve) => {
    const child = spawn(program, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: options.env });
    let stdout = '';
    let stderr = '';
    let late = false;
    if (child.pid !== undefined && options.container !== true) running.add(child.pid);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < MOST) stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-MOST);
    });
    const timer = setTimeout(() => {
      late = true;
      end(child.pid);
      child.stdout.destroy();
      child.stderr.destroy();
    }, options.timeoutMs);
    child.once('exit', () => void running.delete(child.pid ?? 0));
    child.once('error', (error) => {
      clearTimeout(timer);
      resolve({ code: 127, stdout, message: error.message });
    });
    child.once('close', (code) => {
      clearTimeout(timer);
      const message = late ? `it did not answer within ${options.timeoutMs / 1000} s` : lastLine(stderr);
      resolve({ code: code ?? 137, stdout, message });
    });
  });
}

/** Kills the running programs that start no container: their callers are about to end. */
export function endBriefRuns(): void {
  for (const pid of running) end(pid);
}

function end(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}

/**
 * The last line of a program's error messages, without the time that some put in front and the references to the manual
 * that others append.
 */
export function lastLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  const last = lines.filter((line) => line !== '' && !/^(Run|See) 'docker /.test(line)).at(-1) ?? '';
  return last.replace(/^time="[^"]*" level=\w+ msg=|^FATAL: +/, '').slice(0, 300);
}
