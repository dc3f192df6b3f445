import { asError, GryphusError } from '../errors.ts';
import type { Borrower } from './borrower.ts';
import type { DirectInputs } from './direct-inputs.ts';
import type { DirectLending } from './direct-lending.ts';
import type { FlockMessage } from './flock-wire.ts';
import type { Lender } from './lender.ts';
import type { LentFiles } from './lent-files.ts';
import type { PartnerState } from './partner.ts';
import { PASSES_ON } from './paths.ts';

type Ask = Extract<FlockMessage, { t: 'ask' }>;

export interface Answerers {
  readonly borrower: Pick<Borrower, 'piece'>;
  readonly lender: Pick<Lender, 'get'>;
  readonly files: Pick<LentFiles, 'files' | 'read'>;
  readonly ways: { readonly results: Pick<DirectLending, 'open'>; readonly inputs: Pick<DirectInputs, 'open'> };
  readonly log: (message: string, facts?: object) => void;
}

/** Answers a partner's question: about an input of a job that it has, or about what one of its jobs left here. */
export function answerPartner(answerers: Answerers, state: PartnerState, ask: Ask): void {
  // Workers that dial keep no place that other answers need: they answer only when they have connected, or cannot.
  const making =
    ask.what === 'direct'
      ? answer(answerers, state, ask)
      : state.answers.make(async () => answer(answerers, state, ask));
  making.catch((thrown: unknown) => answerers.log('no answer', { message: asError(thrown).message }));
}

async function answer({ borrower, lender, files, ways }: Answerers, state: PartnerState, ask: Ask): Promise<void> {
  const { id, key } = ask;
  const { name, link } = state;
  try {
    if (ask.what === 'blob') return void link.send({ t: 'answer', id, ok: true }, await borrower.piece(name, ask));
    if (ask.what === 'inputs') {
      ways.inputs.open(name, ask);
      return void link.send({ t: 'answer', id, ok: true });
    }
    if (lender.get(key)?.partner !== name) throw new Error('there is no such job of yours');
    if (ask.what === 'direct') {
      await ways.results.open(state, ask);
      return void link.send({ t: 'answer', id, ok: true });
    }
    if (ask.what === 'read') {
      const bytes = await files.read(name, key, ask.path, ask.offset, ask.bytes);
      return void link.send({ t: 'answer', id, ok: true }, bytes);
    }
    const found = await files.files(name, key, ask.outputs);
    link.send({ t: 'answer', id, ok: true, files: [...found.files], missing: [...found.missing], odd: [...found.odd] });
  } catch (thrown) {
    const isInVain = thrown instanceof GryphusError && thrown.code === 'site-refused' && link.version >= PASSES_ON;
    const message = asError(thrown).message.slice(0, 500);
    link.send({ t: 'answer', id, ok: false, message, ...(isInVain ? { refused: true } : {}) });
  }
}
