import { randomBytes } from 'node:crypto';
import { GryphusError } from '../errors.ts';
import { deferred } from '../util/deferred.ts';
import { AfterMark } from './after-mark.ts';
import type { Channel, RunOptions, RunResult } from './contract.ts';
import { runChannel } from './run-channel.ts';
import { type CommandForm, loginShellCommand } from './shell-command.ts';
import { startedInTime } from './start-limit.ts';

/** Starts a command line, interpreted by the user's login shell, at the far side of a connection. */
export type ExecLine = (line: string) => Promise<Channel>;

/**
 * Runs POSIX shell commands over a connection whose far end starts them with the user's login shell, whatever it is.
 */
export class RemoteShell {
  readonly #exec: ExecLine;
  readonly #label: string;

  readonly #how: CommandForm;
  readonly #startMs: number;

  constructor(label: string, exec: ExecLine, how: CommandForm, startMs: number) {
    this.#label = label;
    this.#exec = exec;
    this.#how = how;
    this.#startMs = startMs;
  }

  run(command: string, options?: RunOptions): Promise<RunResult> {
    return runChannel(() => this.open(command), command, this.#label, options);
  }

  /**
   * Resolves once the command has started; 'site-refused' if the login shell ended without starting it, 'timeout' if it
   * did neither.
   */
  async open(command: string): Promise<Channel> {
    const mark = `gryphus-${randomBytes(6).toString('hex')}`;
    const raw = await this.#exec(loginShellCommand(command, mark, this.#how));
    const { promise: started, resolve: start } = deferred<number>();
    const stdout = new AfterMark(mark, (rest) => start(Number(rest)));
    const stderr = new AfterMark(mark, () => undefined);
    for (const [from, to] of [
      [raw.stdout, stdout],
      [raw.stderr, stderr],
    ] as const) {
      from.on('error', () => to.end());
      // A destroyed stream emits no 'end'.
      from.on('close', () => to.end());
      from.pipe(to);
    }
    raw.stdin.on('error', () => undefined);
    const ended = raw.closed.then(() => settled(stdout)).then(() => undefined);
    const pid = await startedInTime(Promise.race([started, ended]), {
      label: this.#label,
      limitMs: this.#startMs,
      said: () => `${stdout.chatter}${stderr.chatter}`,
      giveUp: () => {
        raw.kill();
        for (const stream of [raw.stdout, raw.stderr]) stream.unpipe().resume();
      },
    });
    if (pid === undefined && !stdout.found) throw await this.#notStarted(raw, stdout, stderr);
    let over = false;
    const closed = raw.closed.then((end) => {
      over = true;
      return end;
    });
    return {
      stdin: raw.stdin,
      stdout,
      stderr,
      closed,
      kill: () => {
        if (over) return;
        if (pid !== undefined) void this.#killGroup(pid);
        raw.kill();
        // Output that nobody reads any more must not keep the channel open.
        for (const stream of [raw.stdout, raw.stderr]) stream.unpipe().resume();
        stdout.end();
        stderr.end();
      },
    };
  }

  /** Without a terminal, closing a channel ends no process, so the group is sent TERM and, if it stays, KILL. */
  async #killGroup(pid: number): Promise<void> {
    const kill = (signal: string): string =>
      `kill -s ${signal} -- -${pid} 2>/dev/null || kill -s ${signal} ${pid} 2>/dev/null`;
    try {
      const channel = await this.#exec(
        loginShellCommand(`{ ${kill('TERM')}; } && sleep 1 && { ${kill('KILL')}; }`, 'gryphus-kill', this.#how),
      );
      channel.stdout.resume();
      channel.stderr.resume();
      channel.stdin.end();
    } catch {
      // The connection is gone, so nothing can be killed.
    }
  }

  async #notStarted(raw: Channel, stdout: AfterMark, stderr: AfterMark): Promise<GryphusError> {
    const end = await raw.closed;
    if (end.kind === 'lost') {
      return new GryphusError('site-unreachable', `The connection to ${this.#label} was lost.`, { cause: end.reason });
    }
    const said = `${stdout.chatter}${stderr.chatter}`.trim().slice(0, 500);
    return new GryphusError(
      'site-refused',
      `The login shell of ${this.#label} ended without running our command${said === '' ? '' : `; it said: ${said}`}.`,
      { suggestions: [`Check that this works by hand: ssh ${this.#label} /bin/sh -c true`] },
    );
  }
}

/** Resolves when a transform has processed all that was written to it. */
function settled(stream: AfterMark): Promise<void> {
  return new Promise((resolve) => {
    if (stream.writableFinished) resolve();
    else stream.once('finish', resolve).once('close', resolve);
  });
}
