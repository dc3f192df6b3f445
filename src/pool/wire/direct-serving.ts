import type { Duplex } from 'node:stream';
import { asError } from '../../errors.ts';
import { Answers } from './answers.ts';
import { FRAME_LIMITS, type ResultsAnswer } from './direct-wire.ts';
import { Channel, type WireMessage } from './frames.ts';

type Question = WireMessage & { readonly id: number };
/** What answers a question, and its bytes. */
export type Served = readonly [Omit<Extract<ResultsAnswer, { ok: true }>, 't' | 'id' | 'ok'>, Buffer?];

export interface ServingOptions<Q extends Question> {
  /** Throws for an invalid message. */
  readonly read: (message: WireMessage) => Q;
  /** Rejects with what the other side is told. */
  readonly answer: (question: Q) => Promise<Served>;
  /** The connection ends if nothing is asked for so long, in milliseconds. */
  readonly idleMs: number;
  readonly onEnd: () => void;
}

/** Answers the questions that come by a direct connection. If there are too many, or `read` throws, it ends. */
export function serveDirect<Q extends Question>(
  stream: Duplex,
  { read, answer, idleMs, onEnd }: ServingOptions<Q>,
): Channel<Q, ResultsAnswer> {
  const channel = new Channel<Q, ResultsAnswer>(stream, read, FRAME_LIMITS);
  const answers = new Answers({
    get up() {
      return !channel.closed;
    },
    get backlog() {
      return channel.backlog;
    },
  });
  const idle = setTimeout(() => channel.close('nothing is asked'), idleMs);
  const reply = async (question: Q): Promise<void> => {
    const { id } = question;
    try {
      const [said, bytes] = await answer(question);
      channel.send({ t: 'answer', id, ok: true, ...said }, bytes);
    } catch (thrown) {
      channel.send({ t: 'answer', id, ok: false, message: asError(thrown).message.slice(0, 500) });
    }
  };
  channel.open(
    (question) => {
      idle.refresh();
      answers.make(() => reply(question)).catch((thrown: unknown) => channel.close(asError(thrown).message));
    },
    () => {
      clearTimeout(idle);
      onEnd();
    },
  );
  return channel;
}
