import type { Duplex } from 'node:stream';
import type { AttemptKey } from '../../job/ids.ts';
import { crashPoint } from '../../util/crash-point.ts';
import { type Served, serveDirect } from '../wire/direct-serving.ts';
import {
  type DirectHome,
  MOST_FILES,
  MOST_PIECE,
  readResultsQuestion,
  type ResultsAnswer,
  type ResultsQuestion,
} from '../wire/direct-wire.ts';
import type { Channel } from '../wire/frames.ts';
import type { PartnerDial } from './partner-dial.ts';
import { namedFiles, newFiles, readPiece, withDigests } from './results.ts';
import type { Run } from './run.ts';

/** A link by which nothing was asked for so long is closed, in milliseconds. */
const IDLE_MS = 120_000;

/** What is needed of an attempt. */
export type LeftRun = Pick<Run, 'phase' | 'names'> & { readonly dir: Pick<Run['dir'], 'work' | 'uid' | 'stream'> };
type Link = Channel<ResultsQuestion, ResultsAnswer>;

/** Brings the results of partners' jobs to the partners' gateways, by connections of the worker's own. */
export class WorkerDirectResults {
  readonly #find: (key: AttemptKey) => LeftRun | undefined;
  readonly #links = new Map<AttemptKey, { channel?: Link }>();
  readonly #dial: Pick<PartnerDial, 'dial'>;

  constructor(find: (key: AttemptKey) => LeftRun | undefined, dial: Pick<PartnerDial, 'dial'>) {
    this.#find = find;
    this.#dial = dial;
  }

  /** Connects, and answers whoever has the secret there. Rejects if that is impossible. */
  async open(key: AttemptKey, to: DirectHome): Promise<void> {
    if (!this.#ended(key)) throw new Error(`there are no results of ${key} here`);
    this.end(key, 'another connection takes its place');
    const mine: { channel?: Link } = {};
    this.#links.set(key, mine);
    const forget = () => {
      if (this.#links.get(key) === mine) this.#links.delete(key);
    };
    try {
      const stream = await this.#dial.dial(to);
      if (this.#links.get(key) !== mine || !this.#ended(key)) return void stream.destroy();
      crashPoint('direct.dialled');
      mine.channel = this.#serve(key, stream, forget);
    } catch (thrown) {
      forget();
      throw thrown;
    }
  }

  #serve(key: AttemptKey, stream: Duplex, onEnd: () => void): Link {
    return serveDirect(stream, {
      read: readResultsQuestion,
      answer: (question) => this.#answer(key, question),
      idleMs: IDLE_MS,
      onEnd,
    });
  }

  /** Nothing more of an attempt is said. */
  end(key: AttemptKey, message: string): void {
    const link = this.#links.get(key);
    this.#links.delete(key);
    link?.channel?.close(message);
  }

  close(): void {
    for (const key of this.#links.keys()) this.end(key, 'the worker ends');
  }

  #ended(key: AttemptKey): LeftRun | undefined {
    const run = this.#find(key);
    // Only jobs of strangers have accounts by which their files are told from others.
    return run?.phase === 'ended' && run.dir.uid !== undefined ? run : undefined;
  }

  async #answer(key: AttemptKey, question: ResultsQuestion): Promise<Served> {
    const run = this.#ended(key);
    if (!run) throw new Error('there are no results of it here any more');
    const { dir } = run;
    if (question.t === 'read') {
      const bytes = await readPiece(dir, question.path, question.offset, Math.min(question.bytes, MOST_PIECE));
      crashPoint('direct.read');
      return [{}, bytes];
    }
    const { files, ...others } =
      question.outputs === 'new' ? { files: newFiles(dir, run.names) } : namedFiles(dir, question.outputs);
    if (files.length > MOST_FILES) throw new Error(`it left more than ${MOST_FILES} files`);
    return [{ files: await withDigests(dir, files), ...others }];
  }
}
