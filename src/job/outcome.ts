import { LIFE, type State } from './life.ts';
import { readBoolean, readNumber, type TextSource } from './values.ts';

/** What became of a job, according to its ad. */
export type JobOutcome =
  | { readonly is: 'exited'; readonly code: number }
  | { readonly is: 'killed'; readonly signal: number }
  /** Its site ended it, and its policy accepted that. */
  | { readonly is: 'ended by its site' }
  | { readonly is: 'removed' | 'held' | 'open' };

export function outcomeOf(state: State, ad: TextSource): JobOutcome {
  const { shows } = LIFE[state];
  if (shows === 'held') return { is: 'held' };
  if (shows === 'removed') return { is: 'removed' };
  if (shows !== 'completed') return { is: 'open' };
  if (readBoolean(ad, 'ExitBySignal') === true) return { is: 'killed', signal: readNumber(ad, 'ExitSignal') ?? 0 };
  const code = readNumber(ad, 'ExitCode');
  return code === undefined ? { is: 'ended by its site' } : { is: 'exited', code };
}

export const OUTCOME_ATTRIBUTES = ['ExitBySignal', 'ExitSignal', 'ExitCode'] as const;

/** The program exited by itself, with status 0. */
export function wentWell(outcome: JobOutcome): boolean {
  return outcome.is === 'exited' && outcome.code === 0;
}

export function outcomeText(outcome: JobOutcome): string {
  switch (outcome.is) {
    case 'exited':
      return `exit status ${outcome.code}`;
    case 'killed':
      return `signal ${outcome.signal}`;
    case 'ended by its site':
    case 'removed':
    case 'held':
      return outcome.is;
    case 'open':
      return 'not ended';
  }
}
