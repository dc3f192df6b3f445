import type { FromCentralManager, FromWorker } from '../pool/wire/wire.ts';
import type { Borrowed } from './borrowed-journal.ts';
import type { PartnerState } from './partner.ts';

type Ask = Extract<FromCentralManager, { t: 'ask' }>;
type Answer = Extract<FromWorker, { t: 'answer' }>;

export interface ResultsOptions {
  readonly borrowed: Borrowed | undefined;
  readonly state: PartnerState;
  readonly log: (message: string, facts?: object) => void;
}

/**
 * What our central manager asks of a job that ended at a partner, passed on. It verifies digests and sizes itself, as of
 * any worker; results that are larger than agreed are answered in a way that it refuses.
 */
export async function results(
  ask: Ask,
  { borrowed, state, log }: ResultsOptions,
): Promise<{ readonly answer: Answer; readonly bytes?: Buffer }> {
  const { id } = ask;
  const { name, link, partner, oversize } = state;
  if (!borrowed || borrowed.job.partner !== name) throw new Error(`the pool of ${name} does not have that job`);
  const { key } = borrowed.job;
  if (ask.what === 'files') {
    const {
      files = [],
      missing = [],
      odd = [],
    } = await link.ask({ what: 'files', key, outputs: outputsOf(ask.outputs) });
    const { stdoutBytes = 0, stderrBytes = 0 } = borrowed.ending ?? {};
    const all = files.reduce((sum, { bytes }) => sum + bytes, stdoutBytes + stderrBytes);
    if (all > partner.agreement.max_result) {
      oversize.add(key);
      state.refused(
        'us',
        { clause: 'max_result', message: `the results of ${key} take ${all} bytes` },
        Date.now() / 1000,
      );
      log('results of a partner are too large', { partner: name, key, bytes: all });
      throw new Error(`its results take ${all} bytes, more than max_result of the agreement with ${name}`);
    }
    return { answer: { t: 'answer', id, ok: true, files, missing, odd } };
  }
  if (ask.what !== 'read') throw new Error(`'${ask.what}' is not supported in another pool`);
  if (oversize.has(key)) throw new Error(`its results are larger than max_result of the agreement with ${name}`);
  const { bytes } = await link.ask({ what: 'read', key, path: ask.path, offset: ask.offset, bytes: ask.bytes });
  return { answer: { t: 'answer', id, ok: true }, bytes };
}

function outputsOf(outputs: Extract<Ask, { what: 'files' }>['outputs']): 'new' | string[] {
  return outputs === 'new' ? outputs : [...outputs];
}
