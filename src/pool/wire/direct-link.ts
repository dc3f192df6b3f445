import type { Duplex } from 'node:stream';
import { GryphusError } from '../../errors.ts';
import { type Deferred, deferred } from '../../util/deferred.ts';
import { Turns } from '../../util/turns.ts';
import {
  FRAME_LIMITS,
  type InputQuestion,
  MOST_QUESTIONS,
  type ResultsQuestion,
  readResultsAnswer,
  type ResultsAnswer,
} from './direct-wire.ts';
import { Channel } from './frames.ts';

type Numbered = ResultsQuestion | InputQuestion;
type Question = Numbered extends infer Q ? (Q extends Numbered ? Omit<Q, 'id'> : never) : never;
/** What a worker or a gateway says of results, and a gateway of inputs. */
export type Answered = Extract<ResultsAnswer, { ok: true }> & { readonly bytes: Buffer };

interface Asked {
  readonly wait: Deferred<Answered>;
  readonly most: number;
  /** By the monotonic clock, in milliseconds. */
  readonly at: number;
}

/** A link is closed when nothing was asked for so long, in milliseconds, */
const IDLE_MS = 30_000;
/** when nothing came for so long that was asked for, */
const QUIET_MS = 20_000;
/** and when a list of files, whose digests have to be made, does not come. */
const LIST_MS = 120_000;

/** A connection between a worker and a partner's gateway, by which the other side answers questions about one attempt. */
export class DirectLink {
  readonly #channel: Channel<ResultsAnswer, Numbered>;
  readonly #asked = new Map<number, Asked>();
  readonly #turns = new Turns(() => MOST_QUESTIONS / 2);
  #last = 0;
  #lists = 0;
  #usedAt = performance.now();
  /** Why it has ended. */
  #over: string | undefined;

  constructor(stream: Duplex) {
    this.#channel = new Channel(stream, readResultsAnswer, FRAME_LIMITS);
    this.#channel.open(
      (answer, bytes) => this.#take(answer, bytes),
      (message) => this.#end(message),
    );
  }

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** Rejects with 'site-busy' if the other side refuses, and with 'site-unreachable' if the connection ends first. */
  ask(question: Question): Promise<Answered> {
    return this.#turns.run(async () => {
      if (this.#over !== undefined) throw new GryphusError('site-unreachable', this.#over);
      const id = ++this.#last;
      const wait = deferred<Answered>();
      const isList = question.t === 'files';
      this.#usedAt = performance.now();
      this.#asked.set(id, { wait, most: isList ? 0 : question.bytes, at: this.#usedAt });
      this.#channel.send({ ...question, id });
      if (!isList) return wait.promise;
      this.#lists += 1;
      return wait.promise.finally(() => {
        this.#lists -= 1;
      });
    });
  }

  /** Called about once a second. */
  tick(now = performance.now()): void {
    const [first] = this.#asked.values();
    if (!first) {
      if (now - this.#usedAt > IDLE_MS) this.close('nothing is asked of it');
    } else if (now - Math.max(first.at, this.#channel.heardAt) > (this.#lists > 0 ? LIST_MS : QUIET_MS))
      this.close('it does not answer');
  }

  close(message: string): void {
    this.#channel.close(message);
  }

  #take(answer: ResultsAnswer, bytes: Buffer): void {
    const asked = this.#asked.get(answer.id);
    if (!asked) throw new GryphusError('protocol-error', 'it answers what it was not asked');
    if (bytes.length > asked.most) throw new GryphusError('protocol-error', 'it sends more than it was asked for');
    this.#asked.delete(answer.id);
    this.#usedAt = performance.now();
    if (answer.ok) asked.wait.resolve({ ...answer, bytes });
    else asked.wait.reject(new GryphusError('site-busy', answer.message));
  }

  #end(message: string): void {
    this.#over ??= message;
    for (const { wait } of this.#asked.values()) wait.reject(new GryphusError('site-unreachable', message));
    this.#asked.clear();
  }
}
