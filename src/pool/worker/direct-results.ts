import type { Duplex } from 'node:stream';
import { asError } from '../../errors.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { reach } from '../../reverse-connection/reach.ts';
import { greetHome } from '../../reverse-connection/secure.ts';
import { crashPoint } from '../../util/crash-point.ts';
import { Answers } from '../wire/answers.ts';
import {
  type DirectHome,
  type DirectQuestion,
  FRAME_LIMITS,
  MOST_FILES,
  MOST_PIECE,
  readDirectQuestion,
  type ResultsAnswer,
} from '../wire/direct-wire.ts';
import { Channel } from '../wire/frames.ts';
import { namedFiles, newFiles, readPiece, withDigests } from './results.ts';
import type { Run } from './run.ts';

/** How long a partner's gateway has to answer, in milliseconds, */
const PATIENCE_MS = 5000;
/** and how long one that did not is left alone. */
const REST_MS = 600_000;
/** A link by which nothing was asked for so long is closed, in milliseconds. */
const IDLE_MS = 120_000;

/** What is needed of an attempt. */
export type LeftRun = Pick<Run, 'phase' | 'names'> & { readonly dir: Pick<Run['dir'], 'work' | 'uid' | 'stream'> };
type Link = Channel<DirectQuestion, ResultsAnswer>;

/** Brings the results of partners' jobs to the partners' gateways, by connections of the worker's own. */
export class WorkerDirectResults {
  readonly #find: (key: AttemptKey) => LeftRun | undefined;
  readonly #links = new Map<AttemptKey, { channel?: Link }>();
  /** Gateways that could not be reached, and until when they are left alone, by the monotonic clock in milliseconds. */
  readonly #resting = new Map<string, number>();

  constructor(find: (key: AttemptKey) => LeftRun | undefined) {
    this.#find = find;
  }

  /** Connects, and answers whoever has the secret there. Rejects if that is impossible. */
  async open(key: AttemptKey, { host, port, name, secret }: DirectHome): Promise<void> {
    if (!this.#ended(key)) throw new Error(`there are no results of ${key} here`);
    this.end(key, 'another connection takes its place');
    const mine: { channel?: Link } = {};
    this.#links.set(key, mine);
    const forget = () => {
      if (this.#links.get(key) === mine) this.#links.delete(key);
    };
    try {
      const stream = await this.#dial({ host, port, name, secret });
      if (this.#links.get(key) !== mine || !this.#ended(key)) return void stream.destroy();
      crashPoint('direct.dialled');
      mine.channel = this.#serve(key, stream, forget);
    } catch (thrown) {
      forget();
      throw thrown;
    }
  }

  async #dial({ host, port, name, secret }: DirectHome): Promise<Duplex> {
    const address = `${host} ${port}`;
    if ((this.#resting.get(address) ?? 0) > performance.now()) throw new Error(`${address} was not reachable lately`);
    const raw = await reach({ host, port }, PATIENCE_MS).catch((thrown: unknown) => {
      this.#resting.set(address, performance.now() + REST_MS);
      throw thrown;
    });
    this.#resting.delete(address);
    return greetHome(raw, { worker: name, key: Buffer.from(secret, 'hex'), patienceMs: PATIENCE_MS });
  }

  #serve(key: AttemptKey, stream: Duplex, onEnd: () => void): Link {
    const channel: Link = new Channel<DirectQuestion, ResultsAnswer>(stream, readDirectQuestion, FRAME_LIMITS);
    const answers = new Answers({
      get up() {
        return !channel.closed;
      },
      get backlog() {
        return channel.backlog;
      },
    });
    const idle = setTimeout(() => channel.close('nothing is asked'), IDLE_MS);
    channel.open(
      (question) => {
        idle.refresh();
        void answers.make(async () => this.#answer(channel, key, question));
      },
      () => {
        clearTimeout(idle);
        onEnd();
      },
    );
    return channel;
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

  async #answer(channel: Link, key: AttemptKey, question: DirectQuestion): Promise<void> {
    const { id } = question;
    try {
      const run = this.#ended(key);
      if (!run) throw new Error('there are no results of it here any more');
      const { dir } = run;
      if (question.t === 'read') {
        const bytes = await readPiece(dir, question.path, question.offset, Math.min(question.bytes, MOST_PIECE));
        crashPoint('direct.read');
        return channel.send({ t: 'answer', id, ok: true }, bytes);
      }
      const { files, ...others } =
        question.outputs === 'new' ? { files: newFiles(dir, run.names) } : namedFiles(dir, question.outputs);
      if (files.length > MOST_FILES) throw new Error(`it left more than ${MOST_FILES} files`);
      channel.send({ t: 'answer', id, ok: true, files: await withDigests(dir, files), ...others });
    } catch (thrown) {
      channel.send({ t: 'answer', id, ok: false, message: asError(thrown).message.slice(0, 500) });
    }
  }
}
