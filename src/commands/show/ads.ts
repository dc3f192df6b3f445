import type { AdText } from '../../index.ts';
import { type Expressions, names, unquote } from '../../job/json-ads.ts';

/** `-long`: `Name = expression` lines, followed by an empty line. */
export function longAd(ad: AdText, wanted?: readonly string[]): string {
  return `${names(ad, wanted)
    .map((name) => `${name} = ${ad[name] ?? ''}\n`)
    .join('')}\n`;
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
