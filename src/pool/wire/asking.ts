import { GryphusError } from '../../errors.ts';
import { type Deferred, deferred } from '../../util/deferred.ts';
import type { WireAnswer, WireAsk } from './wire.ts';

type Question = WireAsk extends infer A ? (A extends WireAsk ? Omit<A, 't' | 'id'> : never) : never;
type Answered = Extract<WireAnswer, { ok: true }> & { readonly bytes: Buffer };

/** The questions of one side of a connection that are waiting for answers. */
export class Asking {
  readonly #send: (ask: WireAsk, bytes?: Uint8Array) => boolean;
  readonly #waiting = new Map<number, Deferred<Answered>>();
  #last = 0;

  /** `send` returns whether there is a connection; without one, a question would wait forever. */
  constructor(send: (ask: WireAsk, bytes?: Uint8Array) => boolean) {
    this.#send = send;
  }

  /** Rejects with 'site-busy' if the other side refuses for now, 'site-refused' if it always will, with 'site-unreachable' if the connection ends first. */
  ask(question: Question, bytes?: Uint8Array): Promise<Answered> {
    const id = ++this.#last;
    const wait = deferred<Answered>();
    if (this.#send({ t: 'ask', id, ...question }, bytes)) this.#waiting.set(id, wait);
    else wait.reject(new GryphusError('site-unreachable', 'the connection ended'));
    return wait.promise;
  }

  take(answer: WireAnswer, bytes: Buffer): void {
    const wait = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (answer.ok) wait?.resolve({ ...answer, bytes });
    else wait?.reject(new GryphusError(answer.refused ? 'site-refused' : 'site-busy', answer.message));
  }

  end(message: string): void {
    for (const wait of this.#waiting.values()) wait.reject(new GryphusError('site-unreachable', message));
    this.#waiting.clear();
  }
}
