import * as z from 'zod';
import type { Read } from '../util/schema.ts';
import type { Attr } from './attr.ts';
import { parseAttr, stringAttr } from './attr.ts';
import type { Attributes } from './draft.ts';

/** The attributes as names and expressions in the old syntax, without the draft's internal data. */
export function texts(attributes: Attributes): Record<string, string> {
  const result: Record<string, string> = {};
  for (const { name, attr } of attributes.values()) {
    if (name === '__proto__') Object.defineProperty(result, name, { value: attr.text, enumerable: true });
    else if (!name.startsWith('#')) result[name] = attr.text;
  }
  return result;
}

/** An attribute in JSON: `s` for a string, `t` for the text of any other expression. */
export const STORED_ATTR = z.tuple([z.string(), z.enum(['s', 't']), z.string()]);
export type StoredAttr = Read<typeof STORED_ATTR>;

export function store(attributes: Attributes): StoredAttr[] {
  return [...attributes.values()].map(({ name, attr }) => {
    return attr.kind === 'string' ? ([name, 's', attr.value] as const) : ([name, 't', attr.text] as const);
  });
}

function restored(kind: 's' | 't', text: string): Attr {
  const attr = kind === 's' ? stringAttr(text) : parseAttr(text);
  if (!attr) throw new Error(`a stored attribute does not parse: ${text}`);
  return attr;
}

export function restore(stored: readonly StoredAttr[]): Attributes {
  return new Map(stored.map(([name, kind, text]) => [name.toLowerCase(), { name, attr: restored(kind, text) }]));
}
