import { attributesOf, ClassAd, printExpr } from '../classad/api.ts';
import { expression } from './calculate.ts';

/** The attributes that an expression refers to, in lower case. */
export interface References {
  /** Those of the job's own ad; names missing in `known` count here too. */
  readonly own: ReadonlySet<string>;
  readonly other: ReadonlySet<string>;
}

/** What the user's requirements already refer to, for which HTCondor adds no clause. */
export interface Mentioned {
  of(attribute: string): boolean;
}

const MOST_REMEMBERED = 256;
const remembered = new Map<string, References>();

/** References of an expression in an ad with the attributes `known`; `undefined` if the text does not parse. */
export function referencesOf(text: string, known: readonly string[] = []): References | undefined {
  const key = `${known.join(' ')} ${text}`;
  const found = remembered.get(key) ?? findReferences(text, known);
  if (remembered.size >= MOST_REMEMBERED) remembered.clear();
  if (found) remembered.set(key, found);
  return found;
}

function findReferences(text: string, known: readonly string[]): References | undefined {
  const expr = expression(text);
  if (expr === undefined) return undefined;
  const { my, target } = attributesOf(expr, ClassAd.fromValues(Object.fromEntries(known.map((name) => [name, 0]))));
  return { own: my, other: target };
}

export function hasReferences(text: string): boolean {
  const found = referencesOf(text);
  return found !== undefined && found.own.size + found.other.size > 0;
}

/**
 * The text as an operand of `||` or `&&`, in parentheses if it binds less tightly; `undefined` if it does not parse.
 */
export function wrapOperand(text: string, operator: '||' | '&&'): string | undefined {
  const expr = expression(text);
  if (expr === undefined) return undefined;
  const loose = expr.kind === 'ternary' || (expr.kind === 'binary' && expr.op === '?:');
  const looser = operator === '&&' && expr.kind === 'binary' && expr.op === '||';
  return loose || looser ? `(${printExpr(expr)})` : text;
}
