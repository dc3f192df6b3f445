import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { GryphusError } from '../../errors.ts';
import { TELL_OF_HANG_UP } from '../../util/hang-up.ts';
import { shellWords } from '../../util/shell-quote.ts';

/** Writes files of ours into a directory, which is made; another's file of that name is an error ('conflict'). */
export class OurFiles {
  readonly directory: string;
  readonly #mark: string;
  readonly #home: string | undefined;

  readonly #client: string | undefined;

  /**
   * `mark`: a line that every file of ours has. `home`: the agent for which the commands speak. `client`: of the command server, if the
   * commands are to use it.
   */
  constructor(directory: string, mark: string, home: string | undefined, client?: string) {
    this.directory = resolve(directory);
    this.#mark = mark;
    this.#client = client;
    this.#home = home === undefined ? undefined : resolve(home);
    mkdirSync(this.directory, { recursive: true });
  }

  write(name: string, text: string, mode = 0o644): void {
    const file = join(this.directory, name);
    if (existsSync(file) && !readFileSync(file, 'utf8').includes(this.#mark)) {
      throw new GryphusError('conflict', `${file} exists, and is not ours.`, {
        suggestions: ['Choose another directory.'],
      });
    }
    writeFileSync(file, text);
    chmodSync(file, mode);
  }

  /** An executable that speaks as `spoken` (run.ts). `outlives`: its work is done even if it is killed meanwhile. */
  writeCommand(name: string, spoken: string, outlives = false): void {
    const program = shellWords([process.execPath, process.argv[1] ?? 'gryphus', 'compat', 'speak', spoken]);
    const home = this.#home === undefined ? '' : `GRYPHUS_HOME=${shellWords([this.#home])} export GRYPHUS_HOME\n`;
    const client = this.#client === undefined ? '' : shellWords([this.#client]);
    const served = client === '' ? '' : `[ -x ${client} ] && exec ${client} ${program} "$@"\n`;
    const call = outlives ? `${program} "$@" &\nwait $!` : `exec ${program} "$@"`;
    this.write(
      name,
      `#!/bin/sh\n${this.#mark}\n${TELL_OF_HANG_UP.join('\n')}\n${home}${outlives ? '' : served}${call}\n`,
      0o755,
    );
  }
}
