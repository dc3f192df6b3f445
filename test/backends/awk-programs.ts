import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const SRC = join(import.meta.dirname, '../../src');

/** A word of a shell as written there: quoted and bare parts, without any expansion. */
const WORD = /(?:'[^']*'|"(?:\\.|\$\([^()]*(?:\([^()]*(?:\([^()]*\))*[^()]*\)[^()]*)*\)|[^"\\])*"|[^\s'"|;()])+/y;

/** Every awk program in the site's shell text, by file and line, with the shell's own variables substituted. */
export function awkPrograms(): [where: string, program: string][] {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.sh'));
  const texts = new Map(files.map((name) => [name, readFileSync(join(SRC, name), 'utf8')]));
  const parts = new Map<string, string>();
  for (const text of texts.values())
    for (const [, name = '', value = ''] of text.matchAll(/^([A-Z_]+)='([^']*)'/gm)) parts.set(name, value);
  return [...texts].flatMap(([name, text]) =>
    [...text.matchAll(/(?<=^|[\s(])awk(?= )/gm)].flatMap(({ index }): [string, string][] => {
      const line = text.slice(text.lastIndexOf('\n', index) + 1, index);
      if (/^\s*#/.test(line) || line.endsWith('check ') || line.endsWith('for tool in ')) return [];
      return [[`${name}:${text.slice(0, index).split('\n').length}`, plain(programAt(text, index + 3), parts)]];
    }),
  );
}

/** The first word after awk's options. */
function programAt(text: string, from: number): string {
  let at = from;
  for (;;) {
    while (/[\s\\]/.test(text[at] ?? '')) at++;
    WORD.lastIndex = at;
    const word = WORD.exec(text)?.[0];
    if (word === undefined) throw new Error(`no program after awk: ${text.slice(from, from + 60)}`);
    at = WORD.lastIndex;
    if (word !== '-v' && word !== '-F') return word;
    while (text[at] === ' ') at++;
    WORD.lastIndex = at;
    WORD.exec(text);
    at = WORD.lastIndex;
  }
}

/** The word without its quotes, with the value of each `$NAME` that the shell text defines. */
function plain(word: string, parts: ReadonlyMap<string, string>): string {
  return word.replace(/'([^']*)'|"((?:\\.|[^"\\])*)"/g, (_, single?: string, double?: string) => {
    if (single !== undefined) return single;
    const value = (double ?? '').replace(/\\(["$\\])/g, '$1');
    return value.replace(/^\$(\w+)$/, (all, name: string) => parts.get(name.toUpperCase()) ?? all);
  });
}
