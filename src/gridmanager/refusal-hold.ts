import { remedyOf } from '../backends/remedies.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { GRID_FAILED, holdAttributes } from '../job/hold.ts';
import type { Refusal } from '../site/contract.ts';

/** HoldReasonCode (HTCondor's manual). */
const CODES: Readonly<Record<Refusal['code'], number>> = {
  'site-refused': GRID_FAILED,
  'input-missing': 13,
  'disk-full': 21,
  'site-busy': GRID_FAILED,
  'site-full': GRID_FAILED,
  arriving: GRID_FAILED,
  'output-missing': 12,
  'unknown-key': GRID_FAILED,
  'already-started': GRID_FAILED,
};

/** The hold of a job that its site refused. */
export function holdByRefusal(site: string, refusal: Refusal): AttrTexts {
  const remedy = remedyOf(refusal.message);
  const reason = `Site ${site}: ${refusal.message.replace(/\.$/, '')}`;
  return holdAttributes(remedy === undefined ? reason : `${reason}. ${remedy}.`, CODES[refusal.code]);
}
