import type { AdText } from '../../index.ts';
import { unquote } from '../../job/json-ads.ts';

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

/** The value of a number literal. */
export function numberOf(ad: AdText, name: string): number | undefined {
  const text = ad[name];
  if (text === undefined || text === '') return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}
