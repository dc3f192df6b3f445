import type { AdText } from '../../index.ts';
import { unquote } from './ad.ts';

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

/** `-long`: `Name = expression` lines, followed by an empty line. */
export function longAd(ad: AdText, wanted?: readonly string[]): string {
  return `${names(ad, wanted)
    .map((name) => `${name} = ${ad[name] ?? ''}\n`)
    .join('')}\n`;
}

/** `-json` (one ad of the array, over several lines), or `-jsonl` (one line) if `lines` is false. */
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

/** `-xml`'s frame. */
export const XML_HEAD = '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n';
export const XML_TAIL = '</classads>\n';

export function xmlAd(ad: AdText, say: Expressions, wanted?: readonly string[]): string {
  const lines = names(ad, wanted).map((name) => `    <a n="${xmlText(name)}">${xmlValue(ad[name] ?? '', say)}</a>\n`);
  return `<c>\n${lines.join('')}</c>\n`;
}

function xmlValue(text: string, say: Expressions): string {
  if (/^-?\d+$/.test(text)) return `<i>${text}</i>`;
  if (/^-?\d+\.\d+$/.test(text)) return `<r>${text}</r>`;
  const string = unquote(text);
  if (string !== undefined) return `<s>${xmlText(string)}</s>`;
  const low = text.toLowerCase();
  if (low === 'true' || low === 'false') return `<b v="${low[0]}"/>`;
  return low === 'undefined' ? '<un/>' : `<e>${xmlText(say.text(text))}</e>`;
}

export function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
