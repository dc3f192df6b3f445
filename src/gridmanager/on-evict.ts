import type { Attrs, AttrTexts } from '../job/attrs.ts';
import { readString, truthOf, valueText } from '../job/values.ts';
import { withAttrs } from '../job/attrs.ts';

/** Separates the statements of a transform. */
const LINE = '\x1e';

/** Why a job was evicted, in HTCondor's codes. */
export interface Vacated {
  readonly code?: number;
  readonly subCode?: number;
}

/** Exceeded the memory limit of the pool or the site: hold code and subcode (HTCondor manual, "HoldReasonCode" 34). */
export const OUT_OF_MEMORY = { code: 34, subCode: 102 } as const;

/**
 * The attributes that `retry_request_memory`, `request_memory` with several amounts, and the user's own
 * `on_evict_checks` change after an eviction. Each transform named in TransformOnEvict sees the changes of those before
 * it; one whose REQUIREMENTS are not true does nothing (HTCondor 25, "on_evict_checks").
 */
export function changesOnEvict(attrs: Attrs, { code, subCode }: Vacated): AttrTexts {
  const names = (readString(attrs, 'TransformOnEvict') ?? '').split(/[\s,]+/).filter((name) => name !== '');
  if (names.length === 0) return {};
  const why: AttrTexts = {
    VacateReasonCode: code === undefined ? null : String(code),
    VacateReasonSubCode: subCode === undefined ? null : String(subCode),
  };
  let changes: AttrTexts = {};
  for (const name of names) {
    const body = readString(attrs, `TransformBody_${name}`);
    if (body !== undefined) changes = { ...changes, ...transformed(withAttrs(attrs, { ...why, ...changes }), body) };
  }
  return Object.fromEntries(Object.entries(changes).filter(([name, text]) => (attrs.get(name) ?? null) !== text));
}

/** Whether the job now requests different resources, so that running it again may succeed. */
export function asksForOther(changes: AttrTexts): boolean {
  return Object.keys(changes).some((name) => /^request/i.test(name));
}

function transformed(attrs: Attrs, body: string): AttrTexts {
  let changes: AttrTexts = {};
  for (const line of body.split(LINE)) {
    const [, word = '', rest = ''] = /^\s*(\w+)\s+(.*?)\s*$/s.exec(line) ?? [];
    const now = withAttrs(attrs, changes);
    if (word.toUpperCase() === 'REQUIREMENTS') {
      if (truthOf(withAttrs(now, { '#Requirements': rest }), '#Requirements') !== true) return {};
      continue;
    }
    changes = { ...changes, ...statement(word.toUpperCase(), rest, now) };
  }
  return changes;
}

/** Statements of a transform that change one attribute (manual, "ClassAd Transforms"); all others are ignored. */
function statement(word: string, rest: string, attrs: Attrs): AttrTexts {
  const [, name = '', value = ''] = /^(\w+)\s*(.*)$/s.exec(rest) ?? [];
  if (name === '') return {};
  switch (word) {
    case 'SET':
      return value === '' ? {} : { [name]: value };
    case 'DEFAULT':
      return attrs.has(name) || value === '' ? {} : { [name]: value };
    case 'EVALSET': {
      const text = valueText(attrs, value);
      return text === undefined ? {} : { [name]: text };
    }
    case 'COPY':
      return /^\w+$/.test(value) && attrs.has(name) ? { [value]: attrs.get(name) ?? null } : {};
    case 'RENAME':
      return /^\w+$/.test(value) && attrs.has(name) ? { [value]: attrs.get(name) ?? null, [name]: null } : {};
    case 'DELETE':
      return attrs.has(name) ? { [name]: null } : {};
    default:
      return {};
  }
}
