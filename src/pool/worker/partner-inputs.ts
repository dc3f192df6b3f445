import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../../errors.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { CHIRP_ERROR, type HomeAnswer, type HomeRequest } from '../../site/chirp.ts';
import { crashPoint } from '../../util/crash-point.ts';
import { DirectLink } from '../wire/direct-link.ts';
import { type DirectHome, inputsAt } from '../wire/direct-wire.ts';
import type { PartnerDial } from './partner-dial.ts';
import type { Run } from './run.ts';
import type { Pull } from './sandbox.ts';

export interface PartnerInputsOptions {
  /** Asks the gateway of our pool. Rejects while it, or our central manager, cannot be reached. */
  readonly ask: (key: AttemptKey, request: HomeRequest) => Promise<HomeAnswer>;
  readonly dial: Pick<PartnerDial, 'dial'>;
  /** From our central manager. */
  readonly pull: (key: AttemptKey) => Pull;
}

/** Where the late inputs of a run come from. */
export interface InputSource {
  readonly pull: Pull;
  close(): void;
}

/** What is needed of a run. */
export type LackingRun = Pick<Run, 'key' | 'aborted'>;

/** How long it waits before it asks again, in milliseconds. */
const AGAIN_MS = 500;
const LOOK_MS = 1000;

/** Inputs of partners' jobs that are not at our gateway: this worker pulls them from the partner's, by a connection of its own. */
export class PartnerInputs {
  readonly #options: PartnerInputsOptions;
  #asked = 0;

  constructor(options: PartnerInputsOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the connection, or with `undefined` if there is none and the inputs have come to our gateway instead. Rejects with
   * 'interrupted' if the run is not wanted any more, with 'input-missing' if the partner does not have what it announced.
   */
  async open(run: LackingRun): Promise<InputSource | undefined> {
    const source = new Source(run, this.#options, (numbers) => this.#ask(run, numbers));
    if (await source.connect()) return source;
    source.close();
    return undefined;
  }

  /** Where to connect; `undefined`: nowhere, the inputs are at our gateway. */
  async #ask(run: LackingRun, numbers: number[]): Promise<DirectHome | undefined> {
    for (;;) {
      if (run.aborted) throw interrupted();
      const turn = { session: `inputs.${process.pid}.${++this.#asked}`, n: 1, again: false };
      const { result, bytes = EMPTY } = await this.#options
        .ask(run.key, { op: 'partner_inputs', words: [], numbers, ...turn })
        .catch(() => ({ result: CHIRP_ERROR.offline, bytes: EMPTY }));
      if (result === 0) return inputsAt.parse(JSON.parse(Buffer.from(bytes).toString('utf8'))).to;
      if (result === CHIRP_ERROR.doesNotExist)
        throw new GryphusError('input-missing', Buffer.from(bytes).toString('utf8'));
      if (result === CHIRP_ERROR.offline) await sleep(AGAIN_MS);
      else if (result !== CHIRP_ERROR.tryAgain) throw new Error('no gateway has late inputs for it');
    }
  }
}

/** One run's connection, which is made again by whatever way is left when it breaks. */
class Source implements InputSource {
  readonly #run: LackingRun;
  readonly #options: PartnerInputsOptions;
  readonly #ask: (numbers: number[]) => Promise<DirectHome | undefined>;
  readonly #fromHere: Pull;
  readonly #look: NodeJS.Timeout;
  #link: Promise<DirectLink | undefined> = Promise.resolve(undefined);
  #open: DirectLink | undefined;
  /** How often it was told where to connect, and for how many milliseconds the latest try was in vain. */
  #tries = 0;
  #lost = 0;

  constructor(
    run: LackingRun,
    options: PartnerInputsOptions,
    ask: (numbers: number[]) => Promise<DirectHome | undefined>,
  ) {
    this.#run = run;
    this.#options = options;
    this.#ask = ask;
    this.#fromHere = options.pull(run.key);
    this.#look = setInterval(() => {
      if (run.aborted) this.#open?.close('the job is not wanted any more');
      else this.#open?.tick();
    }, LOOK_MS);
  }

  /** Whether there is a connection, and not all at our gateway. */
  async connect(): Promise<boolean> {
    this.#link = this.#connect();
    try {
      return (await this.#link) !== undefined;
    } catch (thrown) {
      this.close();
      throw thrown;
    }
  }

  async #connect(): Promise<DirectLink | undefined> {
    for (;;) {
      const to = await this.#ask([this.#tries, Math.round(this.#lost)]);
      if (!to) return undefined;
      this.#tries += 1;
      const begun = performance.now();
      try {
        const link = new DirectLink(await this.#options.dial.dial(to));
        this.#open = link;
        this.#lost = 0;
        crashPoint('inputs.dialled');
        return link;
      } catch {
        this.#lost = performance.now() - begun;
      }
    }
  }

  readonly pull: Pull = async (blob, offset, bytes) => {
    for (;;) {
      const coming = this.#link;
      const link = await coming;
      if (!link) return this.#fromHere(blob, offset, bytes);
      try {
        const answer = await link.ask({ t: 'input', sha256: blob.sha256, offset, bytes });
        crashPoint('inputs.pulled');
        return answer.bytes;
      } catch (thrown) {
        link.close(String(thrown));
        if (this.#run.aborted) throw interrupted();
        // The first of many questions that fail together makes the next connection.
        if (this.#link === coming) this.#link = this.#connect();
      }
    }
  };

  close(): void {
    clearInterval(this.#look);
    this.#open?.close('all is here');
  }
}

function interrupted(): GryphusError {
  return new GryphusError('interrupted', 'the job is not wanted any more');
}

const EMPTY = new Uint8Array();
