// Which of debian-packages.json the chosen tests need: those that name a file which one of the tests is, or imports.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** The test files that vitest runs for these words: those whose path has one of them; all, where no word is a path. */
export function chosenTests(root, words) {
  const all = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => join('test', name))
    .filter((name) => name.endsWith('.test.ts'));
  const some = all.filter((name) =>
    words.some((word) => !word.startsWith('-') && name.includes(word.replace(/^\.\//, ''))),
  );
  return some.length > 0 ? some : all;
}

/** These files and all of test/ that they import, themselves or by others. */
export function withImports(root, files) {
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file) || !file.startsWith('test/') || !existsSync(join(root, file))) return;
    seen.add(file);
    const text = readFileSync(join(root, file), 'utf8');
    for (const [, to] of text.matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)'(\.[^']+)'/gm))
      visit(relative(root, join(root, dirname(file), to)));
  };
  files.forEach(visit);
  return [...seen];
}

/** `tests` of a package: what cannot run without it; `uses`: what else, test or helper, calls it. */
export function isNeeded({ tests, uses = [] }, files) {
  return anyMatches([...tests, ...uses], files);
}

export function anyMatches(globs, files) {
  const patterns = globs.map(patternOf);
  return files.some((file) => patterns.some((pattern) => pattern.test(file)));
}

/** `**` + `/`, `*` and `{a,b}`. */
function patternOf(glob) {
  const parts = glob.match(/\*\*\/|\*|\{[^}]*\}|[^*{]+/g) ?? [];
  const text = parts.map((part) => {
    if (part === '**/') return '(?:.*/)?';
    if (part === '*') return '[^/]*';
    if (part.startsWith('{')) return `(?:${part.slice(1, -1).split(',').map(literally).join('|')})`;
    return literally(part);
  });
  return new RegExp(`^${text.join('')}$`);
}

function literally(text) {
  return text.replace(/[.+?^$()|[\]\\]/g, '\\$&');
}
