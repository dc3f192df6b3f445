import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The README's code blocks in one language, in order, by the heading above them; '' for those before the first heading.
 */
export function readmeBlocks(language: string): ReadonlyMap<string, readonly string[]> {
  const text = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  const blocks = new Map<string, string[]>();
  let heading = '';
  for (const [, title, found, body] of text.matchAll(/^## (.+)$|^```(\w+)\n([\s\S]*?)^```$/gm)) {
    if (title !== undefined) heading = title;
    else if (found === language) blocks.set(heading, [...(blocks.get(heading) ?? []), body ?? '']);
  }
  return blocks;
}
