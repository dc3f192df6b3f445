import { GryphusError } from '../../errors.ts';
import { isPrintAs, PRINT_AS_NAMES } from './print-as.ts';

/** One column of a print format. */
export interface Column {
  readonly expression: string;
  readonly heading: string;
  /** A printf format with one conversion. */
  readonly printf?: string;
  /** A name of `PRINT_AS`. */
  readonly printAs?: string;
  /** In columns; `undefined`: as wide as the widest cell. */
  readonly width: number | undefined;
  readonly left: boolean;
  readonly truncate: boolean;
  /** No blank before it. */
  readonly noPrefix: boolean;
  /** Printed for an undefined value: a character; doubled, it fills the column. */
  readonly or?: string;
}

/** The contents of a `-print-format` file (HTCondor's manual, "condor_q", "-print-format"). */
export interface PrintFormat {
  readonly columns: readonly Column[];
  readonly title: boolean;
  readonly heads: boolean;
  readonly summary: boolean;
  /** If set, each value is preceded by its heading and this text. */
  readonly label: string | undefined;
  readonly where: readonly string[];
  readonly groupBy: readonly { readonly expression: string; readonly descending: boolean }[];
}

type Token = { readonly text: string; readonly from: number; readonly to: number; readonly quoted: boolean };

const COLUMN_WORDS = new Set('AS PRINTF PRINTAS WIDTH TRUNCATE LEFT RIGHT NOPREFIX NOSUFFIX OR'.split(' '));

/**
 * Parses a print format file; a GryphusError 'bad-input' names file and line. `parses`: whether a ClassAd expression is
 * valid.
 */
export function parsePrintFormat(text: string, file: string, parses: (expression: string) => boolean): PrintFormat {
  let options: readonly string[] | undefined;
  let label: string | undefined;
  let summary = true;
  const columns: Column[] = [];
  const where: string[] = [];
  const groupBy: { expression: string; descending: boolean }[] = [];
  let part: 'start' | 'columns' | 'where' | 'group' = 'start';
  for (const [at, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const wrong = (message: string, remedy?: string) =>
      new GryphusError('bad-input', `${file}, line ${at + 1}: ${message}`, {
        suggestions: remedy === undefined ? [] : [remedy],
      });
    const expression = (message: string): string => {
      if (message === '' || !parses(message)) throw wrong(`${JSON.stringify(message)} is not a ClassAd expression.`);
      return message;
    };
    const tokens = tokensOf(line);
    const word = (n: number): string => tokens[n]?.text.toUpperCase() ?? '';
    if (part === 'start') {
      if (word(0) !== 'SELECT') throw wrong('A print format begins with SELECT.', 'Write SELECT in the first line.');
      ({ options, label } = selectOf(tokens.slice(1), wrong));
      part = 'columns';
    } else if (word(0) === 'WHERE' || (word(0) === 'AND' && part === 'where')) {
      where.push(expression(line.slice(tokens[0]?.to ?? 0).trim()));
      part = 'where';
    } else if (word(0) === 'SUMMARY') {
      if (word(1) !== 'STANDARD' && word(1) !== 'NONE') throw wrong('SUMMARY is STANDARD or NONE.');
      summary = word(1) === 'STANDARD';
    } else if (word(0) === 'GROUP' && word(1) === 'BY') {
      part = 'group';
      const rest = line.slice(tokens[1]?.to ?? 0).trim();
      if (rest !== '') groupBy.push(orderOf(rest, expression));
    } else if (part === 'group') groupBy.push(orderOf(line, expression));
    else if (part === 'where') throw wrong(`${JSON.stringify(line)} is after WHERE.`, 'Columns come before WHERE.');
    else columns.push(columnOf(line, tokens, expression, wrong));
  }
  if (options === undefined) throw new GryphusError('bad-input', `${file}: there is no SELECT in it.`);
  if (columns.length === 0) throw new GryphusError('bad-input', `${file}: SELECT has no columns.`);
  const bare = options.includes('BARE');
  return {
    columns,
    title: !bare && !options.includes('NOTITLE'),
    heads: !bare && !options.includes('NOHEADER') && label === undefined,
    summary: summary && !bare && !options.includes('NOSUMMARY'),
    label,
    where,
    groupBy,
  };
}

type Wrong = (message: string, remedy?: string) => GryphusError;

function selectOf(tokens: readonly Token[], wrong: Wrong): { options: readonly string[]; label: string | undefined } {
  const options: string[] = [];
  let label: string | undefined;
  for (let i = 0; i < tokens.length; i++) {
    const word = tokens[i]?.text.toUpperCase() ?? '';
    if (['BARE', 'NOTITLE', 'NOHEADER', 'NOSUMMARY'].includes(word)) options.push(word);
    else if (word === 'LABEL') label = ' = ';
    else if (word === 'SEPARATOR' && label !== undefined) label = tokens[++i]?.text ?? '';
    else {
      throw wrong(
        `SELECT does not know ${JSON.stringify(tokens[i]?.text)} here.`,
        'It knows BARE, NOTITLE, NOHEADER, NOSUMMARY and LABEL [SEPARATOR <text>].',
      );
    }
  }
  return { options, label };
}

function orderOf(line: string, expression: (message: string) => string): { expression: string; descending: boolean } {
  const found = /^(.*?)(?:\s+(ASCENDING|DESCENDING))?$/i.exec(line);
  return { expression: expression(found?.[1] ?? ''), descending: found?.[2]?.toUpperCase() === 'DESCENDING' };
}

function columnOf(
  line: string,
  tokens: readonly Token[],
  expression: (message: string) => string,
  wrong: Wrong,
): Column {
  const first = tokens.findIndex(({ text, quoted }, i) => i > 0 && !quoted && COLUMN_WORDS.has(text.toUpperCase()));
  const end = first < 0 ? line.length : (tokens[first]?.from ?? line.length);
  const of = expression(line.slice(0, end).trim());
  const column: { -readonly [K in keyof Column]: Column[K] } = {
    expression: of,
    heading: of,
    width: undefined,
    left: true,
    truncate: false,
    noPrefix: false,
  };
  const rest = first < 0 ? [] : tokens.slice(first);
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i]?.text.toUpperCase() ?? '';
    const value = (): string => {
      const next = rest[++i];
      if (next === undefined) throw wrong(`${word} needs a value after it.`);
      return next.text;
    };
    if (word === 'AS') column.heading = value();
    else if (word === 'PRINTF') {
      column.printf = value();
      if (!/^[^%]*(%%[^%]*)*%[^%]*(%%[^%]*)*$/.test(column.printf))
        throw wrong('PRINTF takes one conversion, such as %d or %s.');
    } else if (word === 'PRINTAS') {
      column.printAs = value().toUpperCase();
      if (!isPrintAs(column.printAs)) {
        throw wrong(`PRINTAS does not know ${column.printAs}.`, `It knows ${PRINT_AS_NAMES.join(', ')}.`);
      }
    } else if (word === 'WIDTH') {
      const given = value();
      if (given.toUpperCase() === 'AUTO') continue;
      if (!/^-?\d{1,4}$/.test(given) || Number(given) === 0) throw wrong('WIDTH is AUTO or a number of columns.');
      column.width = Math.abs(Number(given));
      column.left = given.startsWith('-');
    } else if (word === 'OR') column.or = value();
    else if (word === 'TRUNCATE') column.truncate = true;
    else if (word === 'LEFT' || word === 'RIGHT') column.left = word === 'LEFT';
    else if (word === 'NOPREFIX') column.noPrefix = true;
    else if (word !== 'NOSUFFIX') throw wrong(`A column does not know ${JSON.stringify(rest[i]?.text)}.`);
  }
  return column;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t' };

/** Words, and quoted texts in which \n, \t, \" and \\ mean the same as in C. */
function tokensOf(line: string): Token[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|\S+/g)].map((found) => {
    const inside = found[1] ?? found[2];
    const text = inside?.replaceAll(/\\(.)/g, (_, c: string) => ESCAPES[c] ?? c) ?? found[0];
    return { text, from: found.index, to: found.index + found[0].length, quoted: inside !== undefined };
  });
}
