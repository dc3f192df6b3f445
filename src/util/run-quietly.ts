import { spawn } from 'node:child_process';

export interface QuietOptions {
  /** Milliseconds after which the command and everything that it started are killed. */
  readonly timeoutMs: number;
  readonly stdin?: string | Uint8Array;
  /** Added to our environment; never a secret. */
  readonly env?: Readonly<Record<string, string>>;
  /** How many bytes of standard output to keep; by default none, so that no one sees the output. */
  readonly keepStdout?: number;
  readonly signal?: AbortSignal;
}

export type QuietEnd =
  | { readonly how: 'exited'; readonly code: number; readonly stdout: Buffer }
  | { readonly how: 'signaled'; readonly signal: string }
  | { readonly how: 'timeout' }
  | { readonly how: 'not-started'; readonly why: string };

/**
 * Runs a program that the user configured (`['/bin/sh', '-c', text]` for a command line) in its own process group.
 * Standard error is dropped, so that nothing secret reaches a log. Never rejects.
 */
export function runQuietly(argv: readonly [string, ...string[]], options: QuietOptions): Promise<QuietEnd> {
  const [program, ...args] = argv;
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      detached: true,
      stdio: ['pipe', options.keepStdout === undefined ? 'ignore' : 'pipe', 'ignore'],
      env: { ...process.env, ...options.env },
    });
    const kept: Buffer[] = [];
    let left = options.keepStdout ?? 0;
    let timedOut = false;
    const endAll = () => {
      timedOut = true;
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        child.kill('SIGKILL');
      }
      child.stdout?.destroy();
    };
    const timer = setTimeout(endAll, options.timeoutMs);
    options.signal?.addEventListener('abort', endAll, { once: true });
    const settle = (end: QuietEnd) => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', endAll);
      resolve(end);
    };
    child.stdout?.on('data', (chunk: Buffer) => {
      if (left > 0) kept.push(Buffer.from(chunk.subarray(0, left)));
      left -= chunk.length;
      chunk.fill(0);
    });
    child.stdin?.on('error', () => undefined); // a command may ignore its input
    child.stdin?.end(options.stdin ?? '');
    child.once('error', (error) => settle({ how: 'not-started', why: error.message }));
    child.once('close', (code, signal) => {
      if (timedOut) settle({ how: 'timeout' });
      else if (code !== null) settle({ how: 'exited', code, stdout: Buffer.concat(kept) });
      else settle({ how: 'signaled', signal: signal ?? 'unknown signal' });
    });
  });
}

/** Describes the end for a sentence: `exited with status 3`. */
export function endText(end: QuietEnd, timeoutMs: number): string {
  switch (end.how) {
    case 'exited':
      return `exited with status ${end.code}`;
    case 'signaled':
      return `was killed by ${end.signal}`;
    case 'timeout':
      return `did not end within ${timeoutMs / 1000} s`;
    case 'not-started':
      return `could not be started (${end.why})`;
  }
}
