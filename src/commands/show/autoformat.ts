import type { AdText, JobId } from '../../index.ts';
import { GryphusError } from '../../errors.ts';
import { formatJobId } from '../../job/ids.ts';
import { lookup } from './ad.ts';
import { padEnd } from './width.ts';

/** The letters of `-af:jlhVr,tng`. */
export interface Format {
  readonly id: boolean;
  readonly labels: boolean;
  readonly heads: boolean;
  readonly quoted: boolean;
  readonly raw: boolean;
  readonly comma: boolean;
  readonly tab: boolean;
  readonly newline: boolean;
  readonly between: boolean;
}

const LETTERS = 'jlhVr,tng';

/** Parses the letters after `-af:`; a GryphusError 'usage' if one is unknown. */
export function parseFormat(letters: string): Format {
  const odd = letters.split('').find((letter) => !LETTERS.includes(letter));
  if (odd !== undefined) {
    throw new GryphusError('usage', `-af does not know the letter '${odd}'.`, {
      suggestions: [
        'Letters: j job id, l labels, h heads, V quoted, r raw, comma, t tab, n newline, g newline between jobs.',
      ],
    });
  }
  const has = (letter: string) => letters.includes(letter);
  return {
    id: has('j'),
    labels: has('l'),
    heads: has('h'),
    quoted: has('V'),
    raw: has('r'),
    comma: has(','),
    tab: has('t'),
    newline: has('n'),
    between: has('g'),
  };
}

/** An ad to be printed; for a job, with its id. */
export interface Shown {
  readonly id?: JobId;
  readonly ad: AdText;
}

/** Evaluates an expression over an ad and prints the value, with quotes around strings if requested. */
export type Evaluate = (expression: string, ad: AdText, quoted: boolean) => string;

/** `condor_q -af`: one line for each job, or a table with headings. */
export function* autoformat(
  jobs: Iterable<Shown>,
  wanted: readonly string[],
  format: Format,
  evaluate: Evaluate,
): Generator<string> {
  const value = (job: Shown, name: string) =>
    format.raw ? (lookup(job.ad, name) ?? 'undefined') : evaluate(name, job.ad, format.quoted);
  if (!format.heads) {
    for (const job of jobs)
      yield line(
        job,
        wanted.map((name) => [name, value(job, name)] as const),
        format,
      );
    return;
  }
  const rows = [...jobs].map((job) => [...(format.id ? [idOf(job)] : []), ...wanted.map((name) => value(job, name))]);
  const heads = [...(format.id ? [' ID '] : []), ...wanted];
  const widths = heads.map((head, i) => Math.max(head.length, ...rows.map((row) => (row[i] ?? '').length)));
  for (const row of [heads, ...rows])
    yield row.map((cell, i) => padEnd(cell, widths[i] ?? 0)).join(format.tab ? '\t' : ' ');
}

function idOf({ id }: Shown): string {
  return id === undefined ? '' : formatJobId(id);
}

function line(job: Shown, cells: readonly (readonly [string, string])[], format: Format): string {
  const texts = cells.map(([name, text]) => (format.labels ? `${name} = ${text}` : text));
  const separator = (format.comma ? ',' : '') + (format.newline ? '\n' : format.tab ? '\t' : ' ');
  const id = format.id ? `${idOf(job)}${format.newline ? '\n' : format.tab ? '\t' : ' '}` : '';
  return `${format.between ? '\n' : ''}${id}${texts.join(separator)}`;
}
