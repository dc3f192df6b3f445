import type { ClassAd } from './ad.ts';
import { fold } from './bytes.ts';
import type { AttrRef, CompareOp, Expr } from './expr.ts';
import type { Matchmaker } from './matchmaker.ts';
import { printExpr, printValue } from './printer.ts';
import { isNumeric, toDouble, type Value } from './values.ts';

/** A clause that prevents a match, and the ads involved. */
export interface Obstacle {
  readonly expr: Expr;
  readonly job: ClassAd;
  readonly candidates: readonly ClassAd[];
  readonly matchmaker: Matchmaker;
}

/** The submit command that sets an attribute, with its unit. */
const COMMANDS: Readonly<Record<string, string>> = {
  requestmemory: 'request_memory (in MB)',
  requestdisk: 'request_disk (in KB)',
  requestcpus: 'request_cpus',
  requestgpus: 'request_gpus',
};
const MIRRORED: Readonly<Record<CompareOp, CompareOp>> = {
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
  '==': '==',
  '!=': '!=',
  '=?=': '=?=',
  '=!=': '=!=',
};
const MOST_SHOWN = 5;

/** What the user can change to make the clause hold somewhere; `undefined` if nothing simple does. */
export function suggestionFor(obstacle: Obstacle): string | undefined {
  const comparison = sidesOf(obstacle);
  if (comparison === undefined) return missingOf(obstacle);
  const { theirs, op, ours } = comparison;
  const values = obstacle.candidates.map((each) => obstacle.matchmaker.evaluate(theirs, obstacle.job, each));
  const present = values.filter((value) => value !== undefined);
  if (present.length === 0) return missing(theirs.name, obstacle.candidates);
  if (op === '>=' || op === '>') return bound(theirs, ours, op, present, Math.max);
  if (op === '<=' || op === '<') return bound(theirs, ours, op, present, Math.min);
  if (op === '==' || op === '=?=') return `there is ${listed(present)}: ask for one of these`;
  return undefined;
}

/** `TARGET.x OP ours`, written either way around. */
function sidesOf(obstacle: Obstacle): { theirs: AttrRef; op: CompareOp; ours: Expr } | undefined {
  const { expr, job } = obstacle;
  if (expr.kind !== 'binary' || !(expr.op in MIRRORED)) return undefined;
  const op = expr.op as CompareOp;
  if (isTheirs(expr.left, job)) return { theirs: expr.left, op, ours: expr.right };
  if (isTheirs(expr.right, job)) return { theirs: expr.right, op: MIRRORED[op], ours: expr.left };
  return undefined;
}

function isTheirs(expr: Expr, job: ClassAd): expr is AttrRef {
  if (expr.kind !== 'ref' || expr.absolute) return false;
  if (expr.base === undefined) return !job.has(expr.name);
  return expr.base.kind === 'ref' && expr.base.base === undefined && /^(?:target|other)$/i.test(expr.base.name);
}

function bound(
  theirs: AttrRef,
  ours: Expr,
  op: CompareOp,
  values: readonly Value[],
  best: (...values: number[]) => number,
) {
  const numbers = values.filter(isNumeric).map((value) => toDouble(value));
  if (numbers.length === 0) return `${theirs.name} is not a number there`;
  const reach = numbers.reduce((one, other) => best(one, other));
  const extreme = op.startsWith('>') ? 'most' : 'least';
  const command = ours.kind === 'ref' ? (COMMANDS[fold(ours.name)] ?? ours.name) : undefined;
  const change = command === undefined ? 'change the condition' : `set ${command} to that`;
  return `the ${extreme} that any has is ${theirs.name} = ${reach}: ${change}${op.length === 1 ? ', with a margin' : ''}`;
}

/** The existing values with their counts, most frequent first. */
function listed(values: readonly Value[]): string {
  const counts = new Map<string, number>();
  for (const value of values) {
    const text = printValue(value);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const sorted = [...counts].sort(([, a], [, b]) => b - a);
  const shown = sorted.slice(0, MOST_SHOWN).map(([text, number]) => `${text} (${number})`);
  return shown.join(', ') + (sorted.length > MOST_SHOWN ? `, and ${sorted.length - MOST_SHOWN} more` : '');
}

/** For a clause that is not a comparison: an attribute in it that no candidate has. */
function missingOf(obstacle: Obstacle): string | undefined {
  const { expr, job, candidates } = obstacle;
  if (isTheirs(expr, job) && candidates.every((each) => !each.has(expr.name))) return missing(expr.name, candidates);
  return expr.kind === 'literal' ? `the condition is always ${printExpr(expr)}` : undefined;
}

function missing(name: string, candidates: readonly ClassAd[]): string {
  const names = new Set(candidates.slice(0, 100).flatMap((each) => [...each.allEntries()].map(([known]) => known)));
  const near = [...names]
    .map((known) => ({ known, away: distance(fold(known), fold(name)) }))
    .filter(({ away }) => away <= Math.max(1, name.length / 4))
    .sort((a, b) => a.away - b.away)[0];
  const hint = near === undefined || near.away === 0 ? '' : `; did you mean ${near.known}?`;
  return `none has an attribute ${name}${hint}`;
}

/** The Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
