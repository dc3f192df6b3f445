import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The code blocks of a page (default: the README) in one language, in order, by the heading above them; '' for those before
 * the first heading.
 */
export function readmeBlocks(language: string, page = 'README.md'): ReadonlyMap<string, readonly string[]> {
  const text = readFileSync(join(import.meta.dirname, '..', page), 'utf8');
  const blocks = new Map<string, string[]>();
  let heading = '';
  for (const [, title, found, body] of text.matchAll(/^## (.+)$|^```(\w+)\n([\s\S]*?)^```$/gm)) {
    if (title !== undefined) heading = title;
    else if (found === language) blocks.set(heading, [...(blocks.get(heading) ?? []), body ?? '']);
  }
  return blocks;
}

/** Everything that a reader of the page types, in its order. */
export const everyBlock = (language: string, page: string): string =>
  [...readmeBlocks(language, page).values()].flat().join('\n');
