import { askedRecord, CHIRP_ERROR, type HomeAnswer, LONGEST_RECORD, readRecord, writeRecord } from '../site/chirp.ts';
import type { Site } from '../site/contract.ts';
import { type SiteAnswer } from './answer.ts';
import type { Session } from './session.ts';
import { answerFields, words } from './site-context.ts';

type AnswerJob = Parameters<NonNullable<Site['answerJobs']>>[0];

/** The most bytes of answers in one request. */
const MOST_ANSWERS = 16 << 20;

/**
 * What running jobs ask their home (`want_io_proxy`): each poll brings the requests that stand at the site, and home's answers go
 * there in exchanges of their own. A request stands there until its answer is on the site's disk.
 */
export class Asking {
  readonly #session: Pick<Session, 'exchange'>;
  #answerJob: AnswerJob | undefined;
  /** By name: what home is working on, and its answer that is not yet known to be there. */
  readonly #known = new Map<string, Buffer | undefined>();
  #sending = false;

  constructor(session: Pick<Session, 'exchange'>) {
    this.#session = session;
  }

  answerBy(answerJob: AnswerJob): void {
    this.#answerJob = answerJob;
  }

  /** Whether requests are wanted. */
  get open(): boolean {
    return this.#answerJob !== undefined;
  }

  /** Words for a poll: what need not be sent again. */
  words(): readonly string[] {
    return [...this.#known.keys()].map((name) => `asked:${name}`);
  }

  /** Takes the requests in a poll's answer, and sends answers that did not arrive. */
  take(answer: SiteAnswer): void {
    for (const { kind, rest, bytes } of answer.lines) {
      const [name = ''] = rest.split(' ');
      if (kind !== 'asked' || bytes === undefined || this.#known.has(name)) continue;
      this.#known.set(name, undefined);
      void this.#answer(bytes).then((reply) => {
        this.#known.set(name, writeRecord({ result: reply.result }, reply.bytes));
        void this.#send();
      });
    }
    void this.#send();
  }

  async #answer(record: Buffer): Promise<HomeAnswer> {
    const read = record.length <= LONGEST_RECORD ? readRecord(record, askedRecord) : undefined;
    if (!read || !this.#answerJob) return { result: CHIRP_ERROR.invalidRequest };
    return this.#answerJob(read.head.key, read.head.request, read.bytes);
  }

  /** Sends what is answered. If the site cannot be reached, the next poll that succeeds tries again. */
  async #send(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    try {
      for (let batch = this.#ready(); batch.length > 0; batch = this.#ready()) {
        const names = batch.map(([name, bytes]) => `${name}:${bytes.length}`);
        const bytes = Buffer.concat(batch.map(([, one]) => one));
        const answered = answerFields(await this.#session.exchange('answer', [words(names), bytes]), 'answered');
        for (const [name = ''] of answered) this.#known.delete(name);
        // The disk there is full.
        if (answered.length < batch.length) return;
      }
    } catch {
      // Its connection is gone.
    } finally {
      this.#sending = false;
    }
  }

  #ready(): (readonly [name: string, answer: Buffer])[] {
    const ready: (readonly [string, Buffer])[] = [];
    let size = 0;
    for (const [name, answer] of this.#known) {
      if (answer === undefined) continue;
      size += answer.length;
      if (ready.length > 0 && size > MOST_ANSWERS) break;
      ready.push([name, answer]);
    }
    return ready;
  }
}
