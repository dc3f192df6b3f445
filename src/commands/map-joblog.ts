import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { GryphusError } from '../errors.ts';
import type { MapResult } from '../index.ts';
import { reasonOf } from '../util/plain-text.ts';

const HEADER = 'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n';
/** Everything before the command; the numbers may be padded. */
const LINE = /^(\d+)(?:\t[^\t]*){5}\t *(-?\d+)\t *(-?\d+)\t/;
/** The status of a task that its site ended, or that did not make its outputs. */
const NO_STATUS = -1;

/** Which of the tasks in the log are not run again; `undefined`: the log starts anew. */
export type Resume = 'all' | 'successful' | undefined;

/** GNU parallel's log of the tasks that have ended, a line each. */
export class JobLog {
  readonly #file: string;
  readonly #fd: number;
  readonly #done = new Set<number>();

  /** `name`: with + before it, the lines are added to those that are there. */
  constructor(name: string, resume: Resume) {
    this.#file = name.replace(/^\+/, '');
    if (this.#file === '') throw new GryphusError('usage', '--joblog needs the name of a file.');
    const keep = resume !== undefined || name.startsWith('+');
    const { O_RDWR, O_CREAT, O_APPEND, O_TRUNC } = constants;
    this.#fd = this.#trying(() => openSync(this.#file, O_RDWR | O_CREAT | O_APPEND | (keep ? 0 : O_TRUNC), 0o666));
    const size = this.#trying(() => this.#whole());
    if (size === 0) this.#write(HEADER);
    else if (resume !== undefined) this.#read(resume);
  }

  /** The task need not run; `number`: counts from 1. */
  has(number: number): boolean {
    return this.#done.has(number);
  }

  add(number: number, line: string, result: Omit<MapResult<unknown>, 'of'>): void {
    const { ending, stdout, stderr, problem } = result;
    const { how, host = ':', endedAt = Date.now() / 1000, startedAt = endedAt } = ending;
    const status = problem !== undefined || how.kind === 'by-site' ? NO_STATUS : how.kind === 'exited' ? how.code : 0;
    const fields = [
      number,
      host,
      startedAt.toFixed(3),
      Math.max(0, endedAt - startedAt)
        .toFixed(3)
        .padStart(10),
      0,
      stdout.length + stderr.length,
      status,
      how.kind === 'signaled' ? how.signal : 0,
      // A line is a task.
      line.replaceAll('\n', '\0'),
    ];
    this.#write(`${fields.join('\t')}\n`);
  }

  close(): void {
    closeSync(this.#fd);
  }

  #write(text: string): void {
    this.#trying(() => writeSync(this.#fd, text));
  }

  /** Removes a line that was not written to its end; the size of what is left. Leaves a file that is no log alone. */
  #whole(): number {
    if (!fstatSync(this.#fd).isFile()) return 0;
    const bytes = readFileSync(this.#file);
    const first = bytes.toString('utf8', 0, bytes.indexOf(10) + 1 || bytes.length);
    if (!HEADER.startsWith(first) && !LINE.test(first)) throw this.#notALog(1);
    const size = bytes.lastIndexOf(10) + 1;
    if (size < bytes.length) ftruncateSync(this.#fd, size);
    return size;
  }

  #read(resume: 'all' | 'successful'): void {
    const lines = this.#trying(() => readFileSync(this.#file, 'utf8')).split('\n');
    for (const [i, line] of lines.entries()) {
      if (line === '' || (i === 0 && line.startsWith('Seq\t'))) continue;
      const [, number, status, signal] = LINE.exec(line) ?? [];
      if (number === undefined) throw this.#notALog(i + 1);
      if (resume === 'all' || (Number(status) === 0 && Number(signal) === 0)) this.#done.add(Number(number));
    }
  }

  #notALog(line: number): GryphusError {
    return new GryphusError('bad-input', `Line ${line} of ${JSON.stringify(this.#file)} is not one of a job log.`, {
      suggestions: ['Name the file that --joblog wrote, or another one to begin anew.'],
    });
  }

  #trying<T>(work: () => T): T {
    try {
      return work();
    } catch (cause) {
      if (cause instanceof GryphusError) throw cause;
      throw new GryphusError(
        'output-unwritable',
        `Cannot keep the job log ${JSON.stringify(this.#file)}: ${reasonOf(cause)}.`,
        { cause },
      );
    }
  }
}
