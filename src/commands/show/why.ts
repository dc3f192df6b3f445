import type { Why } from '../../index.ts';
import { formatJobId } from '../../job/ids.ts';
import { visible } from './width.ts';

/** The answer, its evidence, and what to type. */
export function whyText({ id, state, summary, details, suggestions }: Why): string {
  const lines = [
    `${formatJobId(id)} (${state}): ${visible(summary)}`,
    ...details.map((one) => `    ${visible(one)}`),
    ...suggestions.map((one) => `  → ${visible(one)}`),
  ];
  return `${lines.join('\n')}\n`;
}
