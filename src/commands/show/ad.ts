import type { AdText } from '../../index.ts';

/** The attribute's expression text; the name's case does not matter. */
export function lookup(ad: AdText, name: string): string | undefined {
  const direct = ad[name];
  if (direct !== undefined) return direct;
  const low = name.toLowerCase();
  for (const key in ad) if (key.toLowerCase() === low) return ad[key];
  return undefined;
}

/** The value of a string literal in the old syntax, where a backslash escapes only a quote. */
export function stringOf(ad: AdText, name: string): string | undefined {
  const text = ad[name];
  return text === undefined ? undefined : unquote(text);
}

export function unquote(text: string): string | undefined {
  if (text.length < 2 || text[0] !== '"' || text.at(-1) !== '"') return undefined;
  const inner = text.slice(1, -1);
  if (!inner.includes('"')) return inner;
  return /^(?:[^"]|\\")*$/s.test(inner) ? inner.replaceAll('\\"', '"') : undefined;
}

/** The value of a number literal. */
export function numberOf(ad: AdText, name: string): number | undefined {
  const text = ad[name];
  if (text === undefined || text === '') return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}
