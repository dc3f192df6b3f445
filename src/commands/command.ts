import { writeFileSync } from 'node:fs';
import { Args, Command, Flags } from '@oclif/core';

import type { Configuration, Gryphus, OpenOptions } from '../index.ts';
import { sayFetching } from './fetching.ts';
import { harmless, type Width } from './show/width.ts';

/** What all commands share: the home directory, how Gryphus is opened, how lines are written. */
export abstract class GryphusCommand extends Command {
  static override baseFlags = {
    home: Flags.string({
      summary: 'Directory of configuration and state, instead of $GRYPHUS_HOME or the XDG directories.',
      helpGroup: 'GLOBAL',
      helpValue: '<directory>',
    }),
  };

  /** main handles the errors, so they pass unchanged. */
  protected override async catch(error: Error): Promise<void> {
    throw error;
  }

  protected openOptions(flags: { readonly home?: string | undefined }): OpenOptions {
    return flags.home === undefined ? {} : { home: flags.home };
  }

  /** The configuration files; starts nothing. */
  protected async configuration(flags: { readonly home?: string | undefined }): Promise<Configuration> {
    const { Configuration } = await import('../index.ts');
    return new Configuration(this.openOptions(flags));
  }

  /** Runs `work` with an open Gryphus, starting the Scheduler if needed. */
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

/** An optional positional word. By default, oclif would read standard input for it, which the command itself needs. */
export function word(description: string) {
  return Args.string({ description, ignoreStdin: true });
}

/** A required positional word; one of `options`, if given. */
export function needed(description: string, options?: readonly string[]) {
  return Args.string({ description, required: true, ignoreStdin: true, ...(options ? { options: [...options] } : {}) });
}

/** Joins the lines of each paragraph of a description; lines that begin with a blank stay as they are. */
export function prose(text: string): string {
  return text.replaceAll(/([^\n])\n(?=[^\n ])/g, '$1 ');
}

/** Writes in large chunks to stdout, no faster than it is read, or to an open file. */
export class Out {
  readonly #file: number | undefined;
  readonly #show: (text: string) => string;
  #held: string[] = [];
  #size = 0;

  /** Text from a site or a job must not control a terminal; pipes and files get it unchanged. */
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

  /** Text that may control the terminal. */
  control(text: string): void {
    this.#held.push(text);
    this.#size += text.length;
  }

  /** Called between items of a long list; waits only if the reader is behind. */
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

/** The width of the terminal, or $COLUMNS; `undefined` if stdout is no terminal or the width is unknown. */
export function terminalWidth(): Width {
  if (!process.stdout.isTTY) return undefined;
  const columns = process.env['COLUMNS'] ?? '';
  const width = /^[1-9]\d{0,5}$/.test(columns) ? Number(columns) : process.stdout.columns;
  return width > 0 ? width : undefined;
}

/** Makes Ctrl-C say what continues before it ends the command. */
export function goesOn(message: string): void {
  process.removeAllListeners('SIGINT');
  process.once('SIGINT', () => {
    process.stderr.write(`${process.stderr.isTTY ? '\n' : ''}gryphus: ${message}\n`);
    process.exit(130);
  });
}

/** Aborted by the first Ctrl-C; the command then ends in its own way with status 130. `message`: what continues. */
export function interruptible(message?: string): AbortController {
  const stop = new AbortController();
  process.removeAllListeners('SIGINT');
  process.once('SIGINT', () => {
    process.exitCode = 130;
    if (message !== undefined) process.stderr.write(`${process.stderr.isTTY ? '\n' : ''}gryphus: ${message}\n`);
    stop.abort();
    // A second Ctrl-C ends the command at once.
    process.once('SIGINT', () => process.exit(130));
  });
  return stop;
}
