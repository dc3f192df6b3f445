import { writeFileSync } from 'node:fs';
import { Args, Command, Flags } from '@oclif/core';

import type { Configuration, Gryphus, OpenOptions } from '../index.ts';
import { sayFetching } from './fetching.ts';
import { harmless, type Width } from './show/width.ts';

/** What every command has: where Gryphus lives, how it is opened, how lines are written. */
export abstract class GryphusCommand extends Command {
  static override baseFlags = {
    home: Flags.string({
      summary: 'Directory of configuration and state, instead of $GRYPHUS_HOME or the XDG directories.',
      helpGroup: 'GLOBAL',
      helpValue: '<directory>',
    }),
  };

  /** Errors go up to main as they are. */
  protected override async catch(error: Error): Promise<void> {
    throw error;
  }

  protected openOptions(flags: { readonly home?: string | undefined }): OpenOptions {
    return flags.home === undefined ? {} : { home: flags.home };
  }

  /** The configuration's files; starts nothing. */
  protected async configuration(flags: { readonly home?: string | undefined }): Promise<Configuration> {
    const { Configuration } = await import('../index.ts');
    return new Configuration(this.openOptions(flags));
  }

  /** Runs `work` with an open Gryphus; the Scheduler is started if need be. */
  protected async withGryphus<T>(
    flags: { readonly home?: string | undefined },
    work: (gryphus: Gryphus) => Promise<T>,
    start = true,
  ): Promise<T> {
    const { Gryphus } = await import('../index.ts');
    const gryphus = await Gryphus.open({ ...this.openOptions(flags), start, onFetch: sayFetching() });
    try {
      return await work(gryphus);
    } finally {
      await gryphus.close();
    }
  }
}

/** A positional word that may be missing. oclif would read standard input for it, which is the command's own. */
export function word(description: string) {
  return Args.string({ description, ignoreStdin: true });
}

/** A positional word that must be there, one of `options` if they are given. */
export function needed(description: string, options?: readonly string[]) {
  return Args.string({ description, required: true, ignoreStdin: true, ...(options ? { options: [...options] } : {}) });
}

/** A description of paragraphs: line ends inside one are blanks; lines that begin with a blank stay. */
export function prose(text: string): string {
  return text.replaceAll(/([^\n])\n(?=[^\n ])/g, '$1 ');
}

/** Writes to stdout in large pieces, no faster than it is read; or to an open file. */
export class Out {
  readonly #file: number | undefined;
  readonly #show: (text: string) => string;
  #held: string[] = [];
  #size = 0;

  /** A terminal does not obey what it is shown, which may be words of a site or a job; a pipe and a file have it as it is. */
  constructor(file?: number) {
    this.#file = file;
    this.#show = file === undefined && process.stdout.isTTY ? harmless : (text) => text;
  }

  line(text: string): void {
    this.text(`${text}\n`);
  }

  text(text: string): void {
    this.control(this.#show(text));
  }

  /** What a terminal is to obey. */
  control(text: string): void {
    this.#held.push(text);
    this.#size += text.length;
  }

  /** Called between items of a long list; waits only where the reader is behind. */
  async breathe(): Promise<void> {
    if (this.#size > 65_536) await this.flush();
  }

  async flush(): Promise<void> {
    const all = this.#held.join('');
    this.#held = [];
    this.#size = 0;
    if (this.#file !== undefined) writeFileSync(this.#file, all);
    else if (all !== '' && !process.stdout.write(all))
      await new Promise((resolve) => process.stdout.once('drain', resolve));
  }
}

/** The columns of the terminal, or $COLUMNS of them; `undefined` where stdout is none, or nobody knows. */
export function terminalWidth(): Width {
  if (!process.stdout.isTTY) return undefined;
  const told = process.env['COLUMNS'] ?? '';
  const width = /^[1-9]\d{0,5}$/.test(told) ? Number(told) : process.stdout.columns;
  return width > 0 ? width : undefined;
}

/** What Ctrl-C says from now on, before it ends the command: what goes on without it. */
export function goesOn(message: string): void {
  process.removeAllListeners('SIGINT');
  process.once('SIGINT', () => {
    process.stderr.write(`${process.stderr.isTTY ? '\n' : ''}gryphus: ${message}\n`);
    process.exit(130);
  });
}

/** Aborted by the first Ctrl-C, which then ends the command in its own way with status 130; `words`: what goes on. */
export function interruptible(message?: string): AbortController {
  const stop = new AbortController();
  process.removeAllListeners('SIGINT');
  process.once('SIGINT', () => {
    process.exitCode = 130;
    if (message !== undefined) process.stderr.write(`${process.stderr.isTTY ? '\n' : ''}gryphus: ${message}\n`);
    stop.abort();
    // A second one does not wait.
    process.once('SIGINT', () => process.exit(130));
  });
  return stop;
}
