import type { ClassAd } from './ad.ts';
import { clausesOf } from './clauses.ts';
import { Matchmaker } from './matchmaker.ts';
import { printExpr } from './printer.ts';
import type { EvalOptions } from './state.ts';
import { suggestionFor } from './suggest.ts';
import { asCondition, type Value } from './values.ts';

/** One of the conditions of Requirements that must all hold. */
export interface Clause {
  readonly text: string;
  /** The number of candidates for which it is true, false, undefined, and an error. */
  readonly met: number;
  readonly unmet: number;
  readonly undefined: number;
  readonly error: number;
  /** Candidates that every other clause accepts, so that this one alone rejects them. */
  readonly alone: number;
  /** What to do about it if it prevents a match. */
  readonly suggestion: string | undefined;
}

/** Why a job can run nowhere, or where it could. */
export interface Analysis {
  readonly candidates: number;
  /** Candidates that the job's Requirements reject. */
  readonly refusedByJob: number;
  /** Candidates that the job accepts but that reject the job. */
  readonly refuseJob: number;
  readonly matching: number;
  readonly clauses: readonly Clause[];
  /** The candidates' conditions that the job does not meet, most frequent first. */
  readonly theirs: readonly { readonly text: string; readonly candidates: number }[];
}

/** Tests each clause of a job's Requirements on all candidates, and their Requirements on the job. */
export function analyze(job: ClassAd, candidates: readonly ClassAd[], options?: EvalOptions): Analysis {
  const matchmaker = new Matchmaker(options);
  const requirements = job.get('Requirements');
  const exprs = requirements === undefined ? [] : clausesOf(requirements, job);
  const table = exprs.map((expr) => candidates.map((each) => matchmaker.evaluate(expr, job, each)));
  const holds = table.map((row) => row.map((value) => asCondition(value) === true));
  const failures = candidates.map((_each, at) => holds.filter((row) => row[at] !== true).length);
  const taken = candidates.filter((each) => matchmaker.accepts(job, each));
  const willing = taken.filter((each) => matchmaker.accepts(each, job));
  const clauses = exprs.map((expr, index) => {
    const values = table[index] ?? [];
    const alone = candidates.filter((_each, at) => failures[at] === 1 && holds[index]?.[at] !== true).length;
    const met = values.filter((value) => asCondition(value) === true).length;
    const reach = { expr, job, candidates, matchmaker };
    return {
      text: printExpr(expr),
      ...tally(values),
      met,
      alone,
      suggestion: met === candidates.length || (met > 0 && alone === 0) ? undefined : suggestionFor(reach),
    };
  });
  return {
    candidates: candidates.length,
    refusedByJob: candidates.length - taken.length,
    refuseJob: taken.length - willing.length,
    matching: willing.length,
    clauses,
    theirs: objections(job, taken, matchmaker),
  };
}

function tally(values: readonly Value[]): { unmet: number; undefined: number; error: number } {
  const missing = values.filter((value) => value === undefined).length;
  const unmet = values.filter((value) => asCondition(value) === false).length;
  const met = values.filter((value) => asCondition(value) === true).length;
  return { unmet, undefined: missing, error: values.length - missing - unmet - met };
}

function objections(job: ClassAd, candidates: readonly ClassAd[], matchmaker: Matchmaker): Analysis['theirs'] {
  const counts = new Map<string, number>();
  for (const each of candidates) {
    const requirements = each.get('Requirements');
    const clauses = requirements === undefined ? [] : clausesOf(requirements, each);
    if (requirements === undefined)
      counts.set('(it has no Requirements)', (counts.get('(it has no Requirements)') ?? 0) + 1);
    for (const clause of clauses) {
      if (asCondition(matchmaker.evaluate(clause, each, job)) === true) continue;
      const text = printExpr(clause);
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
  }
  return [...counts]
    .map(([text, number]) => ({ text, candidates: number }))
    .sort((a, b) => b.candidates - a.candidates);
}

/** The analysis in words. `noun`: what to call a candidate, in the singular (`slot`, `site`). */
export function explain(analysis: Analysis, noun = 'slot'): string {
  const { candidates, matching, refusedByJob, refuseJob } = analysis;
  if (candidates === 0) return `There is no ${noun} to choose from.\n`;
  const lines = [`${matching} of ${count(candidates, noun)} would run the job.`];
  if (refusedByJob > 0)
    lines.push(`${refusedByJob} ${refusedByJob === 1 ? 'is' : 'are'} rejected by the job's Requirements:`);
  const guilty = analysis.clauses.filter((clause) => clause.met < candidates);
  for (const clause of guilty.sort((a, b) => b.alone - a.alone || a.met - b.met)) {
    const turned = candidates - clause.met;
    const sole = clause.alone > 0 ? `, ${clause.alone} of them by this alone` : '';
    lines.push(`  ${clause.text}`, `      rejects ${turned}${sole}${reasons(clause)}`);
    if (clause.suggestion !== undefined) lines.push(`      ${clause.suggestion}`);
  }
  if (refuseJob > 0) lines.push(`${refuseJob} would suit the job but reject it:`);
  for (const { text, candidates: number } of analysis.theirs) lines.push(`  ${text}`, `      is not met at ${number}`);
  return `${lines.join('\n')}\n`;
}

function reasons(clause: Clause): string {
  if (clause.undefined > 0 && clause.unmet === 0 && clause.error === 0) return ' (undefined there)';
  const parts = [
    clause.undefined > 0 ? `undefined at ${clause.undefined}` : '',
    clause.error > 0 ? `an error at ${clause.error}` : '',
  ].filter((part) => part !== '');
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
