import type { Properties, Resources, UserLogEvent } from './event.ts';
import { SHAPES } from './shapes.ts';
import { cpuText, type Fields } from './template.ts';
import { type DateStyle, formatEventTime } from './time.ts';

/** A value in an event's ClassAd. */
export type AdValue =
  | string
  | number
  | boolean
  | { readonly real: number }
  | { readonly expression: string }
  | { readonly ad: EventAd };
/** Sorted by length of name, then by name, as HTCondor prints records. */
export type EventAd = readonly (readonly [name: string, value: AdValue])[];

/** The event as a ClassAd with the attribute names of HTCondor's JSON and XML user logs. */
export function userLogAd(event: UserLogEvent, style: DateStyle = {}): EventAd {
  const ad = new Map<string, AdValue>([
    ['Cluster', event.cluster],
    ['Proc', event.proc],
    ['Subproc', event.subproc ?? 0],
    ['EventTime', formatEventTime(event.at, { ...style, legacy: false }, 'T')],
    ['EventTypeNumber', event.type === 'other' ? event.number : SHAPES[event.type].number],
  ]);
  if (event.type === 'other') {
    ad.set('MyType', 'FutureEvent').set('EventHead', event.lines[0] ?? '');
    return sorted(ad);
  }
  const shape = SHAPES[event.type];
  const fields = event as unknown as Fields;
  ad.set('MyType', shape.my);
  for (const [name, value] of Object.entries(shape.also?.(fields) ?? {})) ad.set(name, value);
  const kinds = new Map(shape.lines.flatMap((part) => ('template' in part ? part.template.names : [])));
  for (const [field, name] of Object.entries(shape.ad)) {
    const value = fields[field];
    if (value === undefined || (name === 'ReasonSubCode' && value === 0)) continue;
    const kind = kinds.get(field);
    if (kind === '%') ad.set(name, cpuText(value as Parameters<typeof cpuText>[0]));
    else if (kind === '~') ad.set(name, { real: Number(value) });
    else if (kind !== undefined) ad.set(name, value as string | number);
    else if (name === 'JobAd') for (const [k, v] of value as Properties) ad.set(k, fromText(v));
    else ad.set(name, { ad: sorted(new Map((value as Properties).map(([k, v]) => [k, fromText(v)]))) });
  }
  for (const row of (fields['resources'] as Resources | undefined) ?? []) {
    if (row.usage !== undefined) ad.set(`${row.name}Usage`, number(row.usage));
    if (row.request !== undefined) ad.set(`Request${row.name}`, number(row.request));
    if (row.allocated !== undefined) ad.set(row.name, number(row.allocated));
  }
  return sorted(ad);
}

function number(value: number): AdValue {
  return Number.isInteger(value) ? value : { real: value };
}

/** A literal as its value, anything else as an expression. */
function fromText(text: string): AdValue {
  if (/^-?\d+$/.test(text)) return Number(text);
  if (/^-?\d+\.\d+(?:E[+-]\d+)?$/.test(text)) return { real: Number(text) };
  if (/^true$/i.test(text)) return true;
  if (/^false$/i.test(text)) return false;
  const string = /^"((?:[^"\\]|\\.)*)"$/s.exec(text);
  return string?.[1] === undefined ? { expression: text } : string[1].replaceAll(/\\(["\\])/g, '$1');
}

function sorted(ad: ReadonlyMap<string, AdValue>): EventAd {
  return [...ad].sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1));
}

/** The JSON form, as `condor_wait -echo:JSON` prints it; ends with a newline. */
export function userLogJson(event: UserLogEvent, style: DateStyle = {}): string {
  return `${jsonAd(userLogAd(event, style), '')}\n`;
}

/** The same on one line, without the newline. */
export function userLogJsonLine(event: UserLogEvent, style: DateStyle = {}): string {
  return jsonAd(userLogAd(event, style), undefined);
}

/** `indent` precedes each line; without it, everything is on one line. */
function jsonAd(ad: EventAd, indent: string | undefined): string {
  const inner = indent === undefined ? undefined : `${indent}  `;
  const cells = ad.map(([name, value]) => `${inner ?? ''}${JSON.stringify(name)}: ${jsonValue(value, inner)}`);
  return indent === undefined ? `{${cells.join(', ')}}` : `{\n${cells.join(',\n')}\n${indent}}`;
}

function jsonValue(value: AdValue, indent: string | undefined): string {
  if (typeof value !== 'object') return JSON.stringify(value);
  if ('ad' in value) return jsonAd(value.ad, indent);
  if ('real' in value) return realText(value.real);
  return `"\\/Expr(${JSON.stringify(value.expression).slice(1, -1)})\\/"`;
}

function realText(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

/** The XML form, as `condor_wait -echo:XML` prints it; ends with a newline. */
export function userLogXml(event: UserLogEvent, style: DateStyle = {}): string {
  return `${xmlAd(userLogAd(event, style), '')}\n`;
}

function xmlAd(ad: EventAd, indent: string): string {
  const lines = ad.map(
    ([name, value]) => `${indent}    <a n="${xmlText(name)}">${xmlValue(value, `${indent}    `)}</a>\n`,
  );
  return `<c>\n${lines.join('')}${indent}</c>`;
}

function xmlValue(value: AdValue, indent: string): string {
  if (typeof value === 'string') return `<s>${xmlText(value)}</s>`;
  if (typeof value === 'number') return `<i>${value}</i>`;
  if (typeof value === 'boolean') return `<b v="${value ? 't' : 'f'}"/>`;
  if ('ad' in value) return xmlAd(value.ad, indent);
  return 'real' in value ? `<r>${realText(value.real)}</r>` : `<e>${xmlText(value.expression)}</e>`;
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
