import { shellQuote } from '../util/shell-quote.ts';

/** Up to this many, each is a word of its own. */
const FEW = 20;
/** The most words: a terminal shows them, and somebody copies them. */
const MOST = 200;

interface Run {
  readonly before: string;
  readonly after: string;
  readonly from: number;
  to: number;
}

/** Directories as shell words; many that differ only in a number become `out/{0..599}`, as in bash, zsh and ksh. */
export function directoryWords(directories: readonly string[]): string {
  if (directories.length <= FEW) return directories.map(shellQuote).join(' ');
  const alone: string[] = [];
  const numbered = new Map<string, { readonly before: string; readonly after: string; readonly numbers: number[] }>();
  for (const directory of directories) {
    const [, before, number, after] = /^(.*?)(0|[1-9]\d{0,14})(\D*)$/.exec(directory) ?? [];
    if (before === undefined || number === undefined || after === undefined || /\d$/.test(before)) {
      alone.push(directory);
      continue;
    }
    const key = `${before}\0${after}`;
    const group = numbered.get(key) ?? { before, after, numbers: [] };
    numbered.set(key, group);
    group.numbers.push(Number(number));
  }
  const words = [...numbered.values()].flatMap(({ before, after, numbers }) => {
    const runs: Run[] = [];
    for (const number of numbers.sort((a, b) => a - b)) {
      const last = runs.at(-1);
      if (last?.to === number - 1) last.to = number;
      else runs.push({ before, after, from: number, to: number });
    }
    return runs.map(wordOf);
  });
  return [...words, ...alone.map(shellQuote)].slice(0, MOST).join(' ');
}

function wordOf({ before, after, from, to }: Run): string {
  if (from === to) return shellQuote(`${before}${from}${after}`);
  return `${before === '' ? '' : shellQuote(before)}{${from}..${to}}${after === '' ? '' : shellQuote(after)}`;
}
