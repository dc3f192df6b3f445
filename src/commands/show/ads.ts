import type { AdText } from '../../index.ts';
import { unquote } from './ad.ts';

/** What is said of an expression that is no simple literal. */
export interface Expressions {
  json(text: string): string;
  text(text: string): string;
}

/** Names in HTCondor's order, of those asked for if any are. */
export function names(ad: AdText, wanted?: readonly string[]): string[] {
  const all = Object.keys(ad);
  const low = wanted && new Set(wanted.map((name) => name.toLowerCase()));
  const some = low ? all.filter((name) => low.has(name.toLowerCase())) : all;
  const keys = new Map(some.map((name) => [name, name.toLowerCase()]));
  return some.sort((a, b) => ((keys.get(a) ?? a) < (keys.get(b) ?? b) ? -1 : 1));
}

/** `-long`: `Name = expression` lines, with an empty line after them. */
export function longAd(ad: AdText, wanted?: readonly string[]): string {
  return `${names(ad, wanted)
    .map((name) => `${name} = ${ad[name] ?? ''}\n`)
    .join('')}\n`;
}

/** `-json`: one ad of the array, over many lines. */
export function jsonAd(ad: AdText, say: Expressions, wanted?: readonly string[]): string {
  const lines = names(ad, wanted).map((name) => `  ${JSON.stringify(name)}: ${jsonValue(ad[name] ?? '', say)}`);
  return `{\n${lines.join(',\n')}\n}`;
}

/** `-jsonl`: one ad, one line. */
export function jsonLineAd(ad: AdText, say: Expressions, wanted?: readonly string[]): string {
  const cells = names(ad, wanted).map((name) => `${JSON.stringify(name)}: ${jsonValue(ad[name] ?? '', say)}`);
  return `{${cells.join(',')}}`;
}

function jsonValue(text: string, say: Expressions): string {
  if (/^-?\d+$/.test(text)) return text;
  if (/^-?\d+\.\d+$/.test(text)) return text;
  const string = unquote(text);
  if (string !== undefined) return JSON.stringify(string);
  const low = text.toLowerCase();
  if (low === 'true' || low === 'false') return low;
  if (low === 'undefined') return 'null';
  return say.json(text);
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

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
