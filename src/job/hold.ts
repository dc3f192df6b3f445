import type { GryphusError } from '../errors.ts';
import type { Attrs, AttrTexts } from './attrs.ts';
import { quoted, readNumber, readString } from './values.ts';
import { sentence } from '../util/plain-text.ts';

/**
 * HoldReasonCode for a site's refusal that has no more specific code: "the job's grid resource failed" (HTCondor's
 * manual, GlobusGramError and its successors).
 */
export const GRID_FAILED = 37;
/** Of jobs that were submitted on hold (HTCondor's SubmittedOnHold). */
export const HELD_AT_SUBMIT = 15;
/** Hold codes of the user's own policy (HTCondor's manual). */
const BY_USER_POLICY = 3;
export const POLICY_UNDEFINED = 5;

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

/** HTCondor's wording and attributes for a hold by one of the job's policy expressions. */
export function policyHold({ attrs }: { readonly attrs: Attrs }, attribute: 'OnExitHold' | 'PeriodicHold'): AttrTexts {
  const reason =
    readString(attrs, `${attribute}Reason`) ??
    `The job attribute ${attribute} expression '${attrs.get(attribute)}' evaluated to TRUE`;
  return {
    ...holdAttributes(reason, BY_USER_POLICY, readNumber(attrs, `${attribute}SubCode`) ?? 0),
    NumHolds: String((readNumber(attrs, 'NumHolds') ?? 0) + 1),
  };
}
