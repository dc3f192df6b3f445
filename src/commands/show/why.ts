import type { Why } from '../../index.ts';
import { formatJobId } from '../../job/ids.ts';
import { visible } from './width.ts';

/** Jobs named of each group. */
const NAMED = 5;

interface Group {
  readonly first: Why;
  readonly more: string[];
  count: number;
}

/** Answers, those that differ only in the job's id once, in the order in which they came. */
export class WhyGroups {
  readonly #groups = new Map<string, Group>();

  add(why: Why): void {
    const { id, state, summary, details, suggestions } = why;
    const name = formatJobId(id);
    // A file of standard error has the job's number in its name, mostly.
    const alike = (line: string) => line.replaceAll(name, 'JOB').replace(/^(Its standard error: ).*/, '$1FILE');
    const key = JSON.stringify([state, summary, details, suggestions].flat().map(alike));
    const group = this.#groups.get(key);
    if (!group) {
      this.#groups.set(key, { first: why, more: [], count: 1 });
      return;
    }
    group.count++;
    if (group.more.length < NAMED) group.more.push(name);
  }

  *texts(): Generator<string> {
    for (const { first, more, count } of this.#groups.values()) {
      yield whyText(first);
      const rest = count > more.length + 1 ? ', …' : '';
      if (count > 1)
        yield `    The same holds for ${count - 1} other ${count === 2 ? 'job' : 'jobs'}: ${more.join(', ')}${rest}\n`;
    }
  }
}

/** The answer, its evidence, and what to type. */
export function whyText({ id, state, summary, details, suggestions }: Why): string {
  const lines = [
    `${formatJobId(id)} (${state}): ${visible(summary)}`,
    ...details.map((one) => `    ${visible(one)}`),
    ...suggestions.map((one) => `  → ${visible(one)}`),
  ];
  return `${lines.join('\n')}\n`;
}
