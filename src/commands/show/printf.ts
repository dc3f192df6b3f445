import { GryphusError } from '../../errors.ts';
import type { Evaluate, Shown } from './autoformat.ts';

/** `-format FORMAT ATTRIBUTE`: a text with one conversion of printf(3), and the value for it. */
export interface PrintfItem {
  readonly before: string;
  readonly after: string;
  readonly conversion: Conversion | undefined;
  readonly attribute: string;
}

interface Conversion {
  readonly flags: string;
  readonly width: number;
  readonly precision: number | undefined;
  readonly letter: string;
}

const CONVERSION = /%([-+ 0#]*)(\d*)(?:\.(\d*))?(?:hh?|ll?|[Lqjzt])?([diouxXeEfFgGcsvV])/;

/** Reads the words in pairs; a GryphusError 'usage' if the last one is alone. */
export function parseFormats(words: readonly string[]): PrintfItem[] {
  const items: PrintfItem[] = [];
  for (let i = 0; i < words.length; i += 2) {
    const [format = '', attribute] = words.slice(i, i + 2);
    if (attribute === undefined) {
      throw new GryphusError('usage', `-format ${JSON.stringify(format)} needs an attribute after it.`, {
        suggestions: [String.raw`For example: -format '%d.' ClusterId -format '%d\n' ProcId`],
      });
    }
    // `%%` is not a conversion, so it is hidden from the search.
    const text = unescaped(format).replaceAll('%%', '\0\0');
    const found = CONVERSION.exec(text);
    const show = (part: string) => part.replaceAll('\0\0', '%');
    items.push({
      before: show(found ? text.slice(0, found.index) : text),
      after: found ? show(text.slice(found.index + found[0].length)) : '',
      conversion: found
        ? {
            flags: found[1] ?? '',
            width: Number(found[2] ?? 0),
            precision: found[3] === undefined ? undefined : Number(found[3]),
            letter: found[4] ?? 's',
          }
        : undefined,
      attribute,
    });
  }
  return items;
}

/** Like `condor_q -format`: a missing attribute omits its whole item. */
export function printf(job: Shown, items: readonly PrintfItem[], evaluate: Evaluate): string {
  return items
    .map(({ before, after, conversion, attribute }) => {
      const value = evaluate(attribute, job.ad, conversion?.letter === 'V');
      if (value === 'undefined') return '';
      if (!conversion) return before;
      const text = converted(value, conversion);
      return text === undefined ? '' : `${before}${text}${after}`;
    })
    .join('');
}

function converted(value: string, { flags, width, precision, letter }: Conversion): string | undefined {
  const text = /[sScvV]/.test(letter) ? value.slice(0, precision) : number(value, letter, precision);
  if (text === undefined) return undefined;
  const signed = flags.includes('+') && /^[\d.]/.test(text) && !/[sScvVxXo]/.test(letter) ? `+${text}` : text;
  if (flags.includes('-')) return signed.padEnd(width);
  return flags.includes('0') && !/[scvV]/.test(letter) ? zeros(signed, width) : signed.padStart(width);
}

function zeros(text: string, width: number): string {
  const sign = /^[+-]/.exec(text)?.[0] ?? '';
  return sign + text.slice(sign.length).padStart(width - sign.length, '0');
}

function number(value: string, letter: string, precision: number | undefined): string | undefined {
  const given = value === 'true' ? 1 : value === 'false' ? 0 : Number(value);
  if (value.trim() === '' || Number.isNaN(given)) return undefined;
  switch (letter.toLowerCase()) {
    case 'f':
      return given.toFixed(Math.min(100, precision ?? 6));
    case 'e':
      return given.toExponential(Math.min(100, precision ?? 6)).replace(/e([+-])(\d)$/, 'e$10$2');
    case 'g':
      return String(Number(given.toPrecision(Math.max(1, Math.min(100, precision ?? 6)))));
    case 'x': {
      const hex = Math.trunc(given).toString(16);
      return letter === 'X' ? hex.toUpperCase() : hex;
    }
    case 'o':
      return Math.trunc(given).toString(8);
    default:
      return String(Math.trunc(given));
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\x07',
  '\\': '\\',
  '"': '"',
  "'": "'",
};

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/gs, (all, letter: string) => ESCAPES[letter] ?? all);
}
