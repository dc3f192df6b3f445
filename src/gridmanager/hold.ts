import { remedyOf } from '../backends/remedies.ts';
import type { GryphusError } from '../errors.ts';
import type { Attrs, AttrTexts } from '../job/attrs.ts';
import { quoted } from '../job/values.ts';
import type { Refusal } from '../site/contract.ts';
import { sentence } from '../util/plain-text.ts';

/**
 * HoldReasonCode for a site's refusal that has no more specific code: "the job's grid resource failed" (HTCondor's
 * manual, GlobusGramError and its successors).
 */
const GRID_FAILED = 37;
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

/** HTCondor's attributes for the reason of a hold. */
export function holdAttributes(reason: string, code: number, subCode = 0): AttrTexts {
  return { HoldReason: quoted(sentence(reason)), HoldReasonCode: String(code), HoldReasonSubCode: String(subCode) };
}

/** Moves the hold's attributes to their LastHold counterparts when the job is released. */
export function released({ attrs }: { readonly attrs: Attrs }): AttrTexts {
  return {
    LastHoldReason: attrs.get('HoldReason') ?? null,
    LastHoldReasonCode: attrs.get('HoldReasonCode') ?? null,
    LastHoldReasonSubCode: attrs.get('HoldReasonSubCode') ?? null,
    HoldReason: null,
    HoldReasonCode: null,
    HoldReasonSubCode: null,
  };
}

export function holdByError(error: GryphusError): AttrTexts {
  return holdAttributes(error.message, error.holdCode ?? GRID_FAILED, error.holdSubCode ?? 0);
}

export function holdByRefusal(site: string, refusal: Refusal): AttrTexts {
  const remedy = remedyOf(refusal.message);
  const reason = `Site ${site}: ${refusal.message.replace(/\.$/, '')}`;
  return holdAttributes(remedy === undefined ? reason : `${reason}. ${remedy}.`, CODES[refusal.code]);
}
