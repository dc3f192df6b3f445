import { asError, GryphusError } from '../errors.ts';
import type { FromCentralManager, FromWorker } from '../pool/wire/wire.ts';
import type { Borrowed } from './borrowed-journal.ts';
import { isInside } from './incoming.ts';
import type { ResultsSource } from './direct-results.ts';
import type { PartnerState } from './partner.ts';

type Ask = Extract<FromCentralManager, { t: 'ask' }>;
type Answer = Extract<FromWorker, { t: 'answer' }>;

export interface ResultsOptions {
  readonly borrowed: Borrowed | undefined;
  readonly state: Pick<PartnerState, 'name' | 'partner' | 'refused' | 'strike'> & { readonly direct: ResultsSource };
  readonly log: (message: string, facts?: object) => void;
}

/**
 * What our central manager asks of a job that ended at a partner, passed on. It verifies digests and sizes itself, as of
 * any worker. Rejects with 'site-refused' if the results are larger than agreed.
 */
export async function results(
  ask: Ask,
  { borrowed, state, log }: ResultsOptions,
): Promise<{ readonly answer: Answer; readonly bytes?: Buffer }> {
  const { id } = ask;
  const { name, direct, partner } = state;
  if (!borrowed || borrowed.job.partner !== name) throw new Error(`the pool of ${name} does not have that job`);
  const { key, to } = borrowed.job;
  const isNear = to === undefined;
  // Of its own jobs a partner cannot say that it is in vain to ask: only that a pool between could not bring them.
  const asking: typeof direct.ask = (question) =>
    direct.ask(question, isNear).catch((thrown: unknown) => {
      const { message } = asError(thrown);
      const isInVain = !isNear && thrown instanceof GryphusError && thrown.code === 'site-refused';
      throw isInVain ? new GryphusError('site-refused', `partner ${name}: ${message}`) : new Error(message);
    });
  const { stdoutBytes = 0, stderrBytes = 0 } = borrowed.ending ?? {};
  const limit = (files: number): void => {
    const all = files + stdoutBytes + stderrBytes;
    if (all <= partner.agreement.max_result) return;
    const message = `the results of ${key} take ${all} bytes`;
    state.refused('us', { clause: 'max_result', message }, Date.now() / 1000);
    log('results of a partner are too large', { partner: name, key, bytes: all });
    throw new GryphusError(
      'site-refused',
      `its results take ${all} bytes, more than max_result of the agreement with ${name} allows ` +
        `(${partner.agreement.max_result} bytes): raise it in flock/${name}.toml and release the job, or remove the job.`,
    );
  };
  // The streams come first, and may be all there is.
  limit(0);
  if (ask.what === 'files') {
    const {
      files = [],
      missing = [],
      odd = [],
    } = await asking({ what: 'files', key, outputs: outputsOf(ask.outputs) });
    limit(files.reduce((sum, { bytes }) => sum + bytes, 0));
    const inside = files.filter((file) => isInside(file.name));
    if (inside.length < files.length) {
      state.refused(
        'us',
        { clause: 'results', message: 'it names a result that leaves its directory' },
        Date.now() / 1000,
      );
      state.strike('it names a result that leaves its directory', log, false);
    }
    return { answer: { t: 'answer', id, ok: true, files: inside, missing, odd } };
  }
  if (ask.what !== 'read') throw new Error(`'${ask.what}' is not supported in another pool`);
  const { path, offset, bytes: wanted } = ask;
  const { bytes } = await asking({ what: 'read', key, path, offset, bytes: wanted });
  return { answer: { t: 'answer', id, ok: true }, bytes };
}

/** What our central manager is told instead: to ask again later, or that it would be in vain. */
export function refusalOf(id: number, thrown: unknown): Answer {
  const { message } = asError(thrown);
  const refused = thrown instanceof GryphusError && thrown.code === 'site-refused';
  return { t: 'answer', id, ok: false, message, ...(refused ? { refused } : {}) };
}

function outputsOf(outputs: Extract<Ask, { what: 'files' }>['outputs']): 'new' | string[] {
  return outputs === 'new' ? outputs : [...outputs];
}
