import { timeText } from '../../util/plain-text.ts';
import { CREDENTIAL_HOLD, type WatchConfig, type Watched } from './model.ts';

/** Whether a credential can be used now and, if not, a sentence and a hold subcode. */
export type Usability = { readonly is: 'good' } | Unusable;

export interface Unusable {
  readonly is: 'ended' | 'unusable' | 'early';
  readonly why: string;
  readonly subCode: number;
}

type Limits = Pick<WatchConfig, 'holdBefore' | 'skew'>;

/**
 * The check before every use: a credential that is not 'good' must not start anything at a site. It refuses from
 * `holdBefore` seconds before the end, or from a tenth of a short life, so that nothing ends while under way.
 */
export function usability(credential: Watched, now: number, limits: Limits): Usability {
  const who = `The ${credential.what} '${credential.name}'`;
  if (credential.problem !== undefined) {
    return { is: 'unusable', why: `${who} cannot be used: ${credential.problem}`, subCode: CREDENTIAL_HOLD.unusable };
  }
  const { start, end } = credential;
  if (start !== undefined && start > now + limits.skew) {
    const why = `${who} is valid only from ${timeText(start)}; is the clock of this machine right?`;
    return { is: 'early', why, subCode: CREDENTIAL_HOLD.early };
  }
  const last = lastUse(credential, limits);
  if (end !== undefined && last !== undefined && now >= last) {
    const why = `${who} ${now >= end ? 'ended' : 'ends'} at ${timeText(end)}.`;
    return { is: 'ended', why, subCode: CREDENTIAL_HOLD.ended };
  }
  return { is: 'good' };
}

/** The time from which nothing new is started with it. */
export function lastUse({ start, end }: Watched, { holdBefore }: Limits): number | undefined {
  if (end === undefined) return undefined;
  const tenth = start === undefined ? holdBefore : Math.max(0, (end - start) / 10);
  return Math.floor(end - Math.min(holdBefore, tenth));
}

/** Whether a job that needs these credentials may be submitted, or the first reason why not; an unknown name is one. */
export function mayUse(
  needs: readonly string[],
  credentials: ReadonlyMap<string, Watched>,
  now: number,
  limits: Limits,
): Usability {
  for (const name of needs) {
    const credential = credentials.get(name);
    if (credential === undefined) return unknownCredential(name);
    const found = usability(credential, now, limits);
    if (credential.holds && found.is !== 'good') return found;
  }
  return { is: 'good' };
}

export function unknownCredential(name: string): Unusable {
  return { is: 'unusable', why: `There is no credential '${name}'.`, subCode: CREDENTIAL_HOLD.unusable };
}

/** Why a job is held and what happens next; `remedy` is a command line. */
export function holdReason({ why }: Unusable, remedy?: string): string {
  const type = remedy === undefined ? '' : ` Run: ${remedy}.`;
  return `${why} The job is released automatically when the credential is valid again.${type}`;
}
