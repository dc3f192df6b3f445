/** The part of the submit language that the corpus' node descriptions use. */
export interface Described {
  readonly values: ReadonlyMap<string, string>;
  readonly count: number;
  expand(text: string, process: number): string;
}

type Macro = readonly [name: string, value: string];

export function describe(text: string, before: readonly Macro[], after: readonly Macro[]): Described {
  const values = new Map<string, string>();
  const set = (name: string, value: string): void => void values.set(name.toLowerCase(), value);
  for (const [name, value] of before) set(name, value);
  let count = 1;
  const skipping: boolean[] = [];
  for (const raw of text.split('\n')) {
    const line = raw.trim();
    const words = line.split(/\s+/);
    const first = (words[0] ?? '').toLowerCase();
    if (first === 'if') {
      const name = (words[2] ?? '').toLowerCase();
      skipping.push(!((values.get(name) ?? '') !== ''));
    } else if (first === 'else') skipping.push(!skipping.pop());
    else if (first === 'endif') skipping.pop();
    else if (skipping.includes(true) || line === '' || line.startsWith('#')) continue;
    else if (first === 'queue') {
      count = Number(words[1] ?? '1') || 1;
      break;
    } else {
      const equals = line.indexOf('=');
      if (equals > 0) set(line.slice(0, equals).trim(), line.slice(equals + 1).trim());
    }
  }
  for (const [name, value] of after) set(name, value);
  return {
    values,
    count,
    expand(input, process) {
      let out = input;
      for (let depth = 0; depth < 20 && /\$\([\w.]+(:[^()]*)?\)/.test(out); depth++) {
        out = out.replaceAll(/\$\(([\w.]+)(?::([^()]*))?\)/g, (_all, name: string, fallback: string | undefined) => {
          const key = name.toLowerCase();
          if (key === 'process') return String(process);
          const value = values.get(key);
          return value === undefined || value === '' ? (fallback ?? '') : value;
        });
      }
      return out;
    },
  };
}

/** The words of `arguments`, in either syntax; undefined if the old syntax contains a bare double quote. */
export function argumentWords(text: string): readonly string[] | undefined {
  if (text.startsWith('"') && text.endsWith('"')) return quotedWords(text.slice(1, -1).replaceAll('""', '"'));
  if (/(^|[^\\])"/.test(text)) return undefined;
  return text
    .replaceAll('\\"', '"')
    .split(/\s+/)
    .filter((word) => word !== '');
}

/** The new syntax: single quotes keep blanks together; two of them stand for one. */
function quotedWords(text: string): readonly string[] {
  const parts = text.match(/(?:'(?:[^']|'')*'|[^\s'])+/g) ?? [];
  return parts.map((part) =>
    part.replaceAll(/'((?:[^']|'')*)'/g, (_all, inner: string) => inner.replaceAll("''", "'")),
  );
}
