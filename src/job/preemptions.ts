import type { Attrs } from './attrs.ts';
import { quoted, readString } from './values.ts';

/** How often a job was preempted, by cause: `owner=2 priority=1`. */
const ATTRIBUTE = 'GryphusPreemptions';

/** How often a job had to leave a machine of the pool, by cause; `lost`: the machine was lost. */
export function preemptionsOf(attrs: Pick<Attrs, 'get'>): Readonly<Record<string, number>> {
  const found = (readString(attrs, ATTRIBUTE) ?? '').matchAll(/([a-z]+)=(\d{1,9})(?= |$)/g);
  return Object.fromEntries([...found].map(([, cause = '', times]) => [cause, Number(times)]));
}

/** The change of its ad when it is preempted once more. */
export function oneMorePreemption(attrs: Pick<Attrs, 'get'>, cause: string): Readonly<Record<string, string>> {
  const before = preemptionsOf(attrs);
  const all = { ...before, [cause]: (before[cause] ?? 0) + 1 };
  const words = Object.entries(all).map(([name, times]) => `${name}=${times}`);
  return { [ATTRIBUTE]: quoted(words.join(' ')) };
}
