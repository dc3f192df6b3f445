import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { userLogPath } from '../job/user-log-path.ts';

/**
 * Refuses a log that could never be written, since nothing could be reported later. Checks each directory once, and
 * what is at the log's own path only for the first job of a directory.
 */
export class LogCheck {
  readonly #seen = new Set<string>();
  #shared = false;

  check(own: AttrTexts, shared: AttrTexts): void {
    if (!('UserLog' in own) && this.#shared) return;
    this.#shared = true;
    const path = userLogPath({ get: (name) => own[name] ?? shared[name] ?? undefined });
    if (path === undefined) return;
    const directory = dirname(path);
    if (this.#seen.has(directory)) return;
    this.#seen.add(directory);
    if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
      throw new GryphusError('bad-input', `The log ${path} cannot be written: there is no directory ${directory}.`, {
        suggestions: [`mkdir -p '${directory}', or correct \`log\` in the submit file.`],
      });
    }
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === false) {
      throw new GryphusError('bad-input', `The log ${path} cannot be written: it is not a regular file.`, {
        suggestions: ['Give `log` another name in the submit file.'],
      });
    }
  }
}
