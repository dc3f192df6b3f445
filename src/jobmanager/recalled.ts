import { readAdLine } from '../job/ad-lines.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { type AttemptKey, isAttemptKey } from '../job/ids.ts';
import type { RecalledAttempt } from '../site/audit.ts';
import { octalDecode, percentDecode } from '../site/escape.ts';
import type { SiteAnswer } from './answer.ts';

interface Reading {
  readonly key: AttemptKey;
  readonly prepared: number;
  readonly attrs: Map<string, string>;
  readonly env: Map<string, string>;
}

/** The answer of `do_recall` (sweeping.sh). Lines that are not an attribute or a variable are left out. */
export function readRecalled(answer: SiteAnswer): readonly RecalledAttempt[] {
  const found: Reading[] = [];
  for (const { kind, rest } of answer.lines) {
    const last = found.at(-1);
    if (kind === 'recalled') {
      const [key = '', prepared = ''] = rest.split(' ');
      if (isAttemptKey(key)) found.push({ key, prepared: Number(prepared) || 0, attrs: new Map(), env: new Map() });
    } else if (kind === 'ad') {
      const attribute = readAdLine(percentDecode(rest));
      if (attribute !== undefined) last?.attrs.set(...attribute);
    } else if (kind === 'env') {
      const line = octalDecode(rest);
      const equals = line.indexOf('=');
      if (equals > 0) last?.env.set(line.slice(0, equals), line.slice(equals + 1));
    }
  }
  return found.map(({ key, prepared, attrs, env }) => ({
    key,
    prepared,
    attrs: Object.fromEntries(attrs) satisfies AttrTexts,
    env: Object.fromEntries(env),
  }));
}
