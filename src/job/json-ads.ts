/** A whole ad: expression texts by name. */
type AdText = Readonly<Record<string, string>>;

/** How to print expressions that are not simple literals. */
export interface Expressions {
  json(text: string): string;
  text(text: string): string;
}

let lastKeys = '';
let lastNames: readonly string[] = [];

/** Names in HTCondor's order, limited to `wanted` if given. Cached, as most ads of a list have the same names. */
export function names(ad: AdText, wanted?: readonly string[]): readonly string[] {
  const all = Object.keys(ad);
  const keys = `${all.join()};${wanted?.join() ?? '*'}`;
  if (keys === lastKeys) return lastNames;
  const low = wanted && new Set(wanted.map((name) => name.toLowerCase()));
  const some = low ? all.filter((name) => low.has(name.toLowerCase())) : all;
  lastKeys = keys;
  lastNames = some.sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  return lastNames;
}

/** An ad as JSON, as HTCondor's tools write it: over several lines, or on one if `lines` is false. */
export function jsonAds(say: Expressions, wanted?: readonly string[], lines = true): (ad: AdText) => string {
  // Jobs of a cluster share most of their values.
  const said = new Map<string, { readonly text: string; readonly cell: string }>();
  const cell = (name: string, text: string) => {
    const last = said.get(name);
    if (last?.text === text) return last.cell;
    const now = `${lines ? '  ' : ''}${JSON.stringify(name)}: ${jsonValue(text, say)}`;
    said.set(name, { text, cell: now });
    return now;
  };
  return (ad) => {
    const cells = names(ad, wanted).map((name) => cell(name, ad[name] ?? ''));
    return lines ? `{\n${cells.join(',\n')}\n}` : `{${cells.join(',')}}`;
  };
}

const JSON_WORDS: Readonly<Record<string, string>> = { true: 'true', false: 'false', undefined: 'null' };

function jsonValue(text: string, say: Expressions): string {
  const string = unquote(text);
  if (string !== undefined) return JSON.stringify(string);
  if (/^-?\d+(?:\.\d+)?$/.test(text)) return text;
  const word = text.length > 9 ? undefined : JSON_WORDS[text.toLowerCase()];
  return word ?? say.json(text);
}

/** HTCondor's mark for an expression inside JSON. */
export function expressionJson(text: string): string {
  return `"\\/Expr(${JSON.stringify(text).slice(1, -1)})\\/"`;
}

/** The value of a string literal in the old syntax, where a backslash escapes only a quote. */
export function unquote(text: string): string | undefined {
  if (text.length < 2 || text[0] !== '"' || text.at(-1) !== '"') return undefined;
  const inner = text.slice(1, -1);
  if (!inner.includes('"')) return inner;
  return /^(?:[^"]|\\")*$/s.test(inner) ? inner.replaceAll('\\"', '"') : undefined;
}
