import { ClassAd, literal, Matchmaker, parseExpr } from '../classad/api.ts';
import type { Agreement } from '../config/agreements.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { adFrom } from '../pool/wire/ads.ts';
import type { Size } from '../pool/wire/wire.ts';
import { FLOCK_TO, FLOCK_WAY } from './lists.ts';

/** Which clause of an agreement says no, and a sentence for people. */
export interface Refused {
  readonly clause: string;
  readonly message: string;
}

export interface LendingState {
  /** Cores that the partner's jobs hold here now. */
  readonly lent: number;
  /** Idle cores of our workers that may lend. */
  readonly idle: number;
  /** Cores of other pools that our jobs hold now. */
  readonly borrowed: number;
  /** Core hours that we lent beyond those that we borrowed, in the agreement's period. */
  readonly ahead: number;
  /** Unix seconds. */
  readonly now: number;
}

/** How many cores we lend to a partner now beyond what it has, or why none. */
export function lendable(agreement: Agreement, state: LendingState): { readonly cores: number } | Refused {
  const { from, paused, hours, max, threshold, balance, slack } = agreement;
  if (!from) return no('from', 'the agreement does not let their jobs run here');
  if (paused) return no('paused', 'the agreement is paused');
  if (hours !== undefined && !isOpen(hours, state.now)) return no('hours', `lending is open when ${hours}`);
  if (balance !== 'none' && state.ahead >= slack)
    return no(
      'balance',
      `they used ${state.ahead.toFixed(1)} core hours more than we did in a ${balance}; the slack is ${slack}`,
    );
  if (state.borrowed > 0) return no('both-ways', 'our own jobs run in other pools');
  if (state.lent >= max) return no('max', `their jobs hold ${state.lent} of at most ${max} cores`);
  const cores = Math.min(max - state.lent, state.idle - threshold);
  if (cores > 0) return { cores };
  if (state.idle === 0) return no('idle', 'no machine that may lend is idle');
  return no('threshold', `${state.idle} cores are idle, and ${threshold} stay ours`);
}

export function isRefused(answer: { readonly cores: number } | Refused): answer is Refused {
  return 'clause' in answer;
}

export interface AskedJob {
  readonly user: string;
  readonly ad: AttrTexts;
  readonly size: Size;
  /** Bytes of its inputs. */
  readonly inputBytes: number;
}

/** Why a partner's job may not run here whatever is idle. `machines`: the ads of the workers that may lend. */
export function jobRefusal(
  agreement: Agreement,
  { user, ad, inputBytes }: AskedJob,
  machines: readonly AttrTexts[],
  now: number,
): Refused | undefined {
  if (agreement.deny.includes(user)) return no('deny', `jobs of ${user} are not let in`);
  if (agreement.users.length > 0 && !agreement.users.includes(user))
    return no('users', `${user} is not among the users`);
  if (inputBytes > agreement.max_input)
    return no('max_input', `its inputs take ${inputBytes} bytes, of at most ${agreement.max_input}`);
  if (agreement.requirements !== undefined) {
    const matchmaker = new Matchmaker({ now });
    const requirements = parseExpr(agreement.requirements, 'old');
    const job = adFrom(ad);
    if (!machines.some((machine) => matchmaker.evaluate(requirements, adFrom(machine), job) === true))
      return no('requirements', `it does not meet ${agreement.requirements}`);
  }
  return undefined;
}

/** Whether a job is one that is to be passed on to the machines of this slot. */
export const PASSED_HERE = `MY.FlockPasses =?= true && TARGET.${FLOCK_TO} =?= MY.${FLOCK_WAY}`;

/** Which jobs may go to a partner, as an expression over the job (TARGET). */
export function goingRequirements({ own_users: users }: Agreement, each: Size | undefined): string {
  const parts = [
    '(TARGET.WantFlock =!= false)',
    // A borrowed job is passed on only to whom it is meant for, by a path that was looked at for loops.
    `(TARGET.FlockFrom =?= undefined || ${PASSED_HERE})`,
    'TARGET.WantIOProxy =!= true',
    'TARGET.x509userproxy =?= undefined',
    'TARGET.WantContainer =!= true && TARGET.WantDocker =!= true',
  ];
  if (users.length > 0)
    parts.push(
      `(TARGET.FlockFrom =!= undefined || member(TARGET.Owner, {${users.map((user) => JSON.stringify(user)).join(', ')}}))`,
    );
  if (each)
    parts.push(
      `TARGET.RequestCpus <= ${each.cpus} && TARGET.RequestMemory <= ${each.memoryMb} && TARGET.RequestDisk <= ${each.diskKb} && (TARGET.RequestGPUs ?: 0) <= ${each.gpus}`,
    );
  return parts.join(' && ');
}

function isOpen(hours: string, now: number): boolean {
  const at = new Date(now * 1000);
  const clock = new ClassAd()
    .setExpr('ClockMin', literal(at.getHours() * 60 + at.getMinutes()))
    .setExpr('ClockDay', literal(at.getDay()));
  return new Matchmaker({ now }).evaluate(parseExpr(hours, 'old'), clock, new ClassAd()) === true;
}

function no(clause: string, message: string): Refused {
  return { clause, message };
}
