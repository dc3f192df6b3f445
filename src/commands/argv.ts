import { type CondorOption, takeOption } from './condor-options.ts';

/** The flags of a command, as far as rewriting needs them. */
export interface Flagged {
  /** The options of the HTCondor tool that this command replaces. */
  readonly condor?: readonly CondorOption[];
  readonly flags?: Readonly<Record<string, Flag>>;
}

interface Flag {
  readonly type: 'boolean' | 'option';
  readonly aliases?: string[];
  readonly char?: string;
  readonly charAliases?: string[];
}

/**
 * Rewrites HTCondor's conventions for this command line: single-dash long options (`-nobatch`, also shortened, like
 * `-const`), `-af:jh A B`, `-dry-run -`, `-wait 60`; and `help COMMAND`, as in git. Leaves everything else unchanged.
 */
export function condorHabits(words: readonly string[], commands: Readonly<Record<string, Flagged>>): string[] {
  const at = words.findIndex((word) => !word.startsWith('-'));
  const topic = words[at];
  if (topic === undefined) return words.map((word) => OUTSIDE[word] ?? word);
  if (topic === 'version' && words.length === 1) return ['--version'];
  if (topic === 'help' && at === 0) return condorHabits([...words.slice(1), '--help'], commands);
  const two = `${topic}:${words[at + 1] ?? ''}`;
  const [id, from] = two in commands ? [two, at + 2] : [topic, at + 1];
  const flags = commands[id]?.flags ?? {};
  const out = words.slice(0, from);
  for (let i = from; i < words.length; i++) {
    const word = words[i] ?? '';
    // The rest belongs to another program, or is data.
    if (word === '--') return [...out, ...words.slice(i)];
    if ((id === 'run' || id === 'map') && !word.startsWith('-')) return [...out, '--', ...words.slice(i)];
    if (id === 'map' && takesNext(word, flags)) {
      out.push(word, ...words.slice(i + 1, i + 2));
      i++;
      continue;
    }
    const own = word.startsWith('--') && word.slice(2) in flags;
    const taken = own ? undefined : takeOption(words.slice(i), commands[id]?.condor ?? []);
    if (taken !== undefined) {
      const before = taken.option.toggles ? out.indexOf(taken.words[0] ?? '', from) : -1;
      if (before < 0) out.push(...taken.words);
      else out.splice(before, 1);
      i += taken.used - 1;
      continue;
    }
    if (word === '-h' && i === from) {
      out.push('--help');
      continue;
    }
    if (word === '-0' && 'null' in flags) {
      out.push('--null');
      continue;
    }
    const found = /^-{1,2}([a-z][a-z_-]*)(?::(.*))?$/i.exec(word);
    const name =
      found?.[1] === undefined || word.includes('=') ? undefined : longName(found[1], flags, word.startsWith('--'));
    if (name === undefined) {
      if (isLongAsConstraint(word, flags)) out.push(`-${word}`);
      else out.push(id === 'edit' && /^-[\d.]/.test(word) ? `${out.pop() ?? ''}=${word}` : word);
      continue;
    }
    if (name === 'af') {
      if (found?.[2]) out.push(`--af-format=${found[2]}`);
      const before = out.length;
      while (words[i + 1] !== undefined && !words[i + 1]?.startsWith('-')) out.push('--af', words[++i] ?? '');
      // Lets oclif report that the flag lacks a value.
      if (out.length === before) out.push('--af');
      continue;
    }
    if (name === 'format') {
      for (const given of [words[i + 1], words[i + 2]]) if (given !== undefined) out.push(`--format=${given}`);
      i += 2;
      continue;
    }
    out.push(`--${name}`);
    if (flags[name]?.type === 'option' && words[i + 1] !== undefined) out.push(words[++i] ?? '');
  }
  return out;
}

/**
 * Whether oclif would take an unknown long option, such as `-completedsince`, as `-c` with a constraint: all jobs or none
 * would match it, without an error.
 */
function isLongAsConstraint(word: string, flags: Flagged['flags'] & object): boolean {
  return flags['constraint']?.char === 'c' && /^-c(?!(?:true|false)$)[a-z_-]{2,}$/i.test(word);
}

/** Whether a word of short options, `-j` or `-kj`, is followed by a value. */
function takesNext(word: string, flags: Readonly<Record<string, Flag>>): boolean {
  if (!/^-[A-Za-z]+$/.test(word)) return false;
  const kinds = Array.from(
    word.slice(1),
    (letter) => Object.values(flags).find((one) => one.char === letter || one.charAliases?.includes(letter))?.type,
  );
  return kinds.pop() === 'option' && kinds.every((kind) => kind === 'boolean');
}

/** Words that may stand without a command. */
const OUTSIDE: Readonly<Record<string, string>> = {
  '-help': '--help',
  '-h': '--help',
  '-version': '--version',
  '-V': '--version',
  '-v': '--version',
};

const OTHER_NAMES: Readonly<Record<string, string>> = {
  autoformat: 'af',
  help: 'help',
  jobads: 'long',
  reason: 'reason',
};

/** The full name of a flag of the command; after a single dash, three letters or more are enough. */
function longName(word: string, flags: Flagged['flags'] & object, double: boolean): string | undefined {
  const low = word.toLowerCase();
  const other = OTHER_NAMES[low];
  if (low === 'help' || (other !== undefined && other in flags)) return other;
  if (low in flags) return low;
  for (const [name, { aliases }] of Object.entries(flags)) if (aliases?.includes(low)) return name;
  if (double || low.length < 3) return undefined;
  const near = Object.keys(flags).filter((name) => name.startsWith(low));
  return near.length === 1 ? near[0] : undefined;
}
