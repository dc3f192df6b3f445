import { GryphusError } from '../errors.ts';
import { didYouMean } from '../util/did-you-mean.ts';
import { shellWords } from '../util/shell-words.ts';
import { lsf } from './lsf.ts';
import {
  BadValue,
  type Dialect,
  noWishes,
  type Option,
  SYSTEMS,
  type System,
  type Wishes,
  type Written,
} from './model.ts';
import { pbs } from './pbs.ts';
import { sge } from './sge.ts';
import { slurm } from './slurm.ts';

export const DIALECTS: Readonly<Record<System, Dialect>> = { slurm, pbs, sge, lsf };

/** The words of one directive line. */
interface Directive {
  readonly line: number;
  readonly words: readonly string[];
}

/** A script whose directives have been read. */
export interface BatchScript {
  /** `undefined`: a script without directives. */
  readonly system: System | undefined;
  readonly wishes: Wishes;
  /** As messages name it. */
  readonly file: string;
  readonly warnings: readonly { readonly line?: number; readonly message: string }[];
  /** What the first line names as interpreter, with its words. */
  readonly interpreter: string | undefined;
}

/** Whether a text given to a submit is a program of its own, not a submit description. */
export function isScript(text: string): boolean {
  const first = text.slice(0, text.search(/\n|$/));
  if (first.startsWith('#!')) return !/condor_submit|gryphus/.test(first);
  return firstSystem(text) !== undefined;
}

/** The system of the first directive; `undefined`: the script has none. */
function firstSystem(text: string): System | undefined {
  for (const line of text.split('\n')) {
    const found = SYSTEMS.find((system) => DIALECTS[system].prefix.test(line));
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Reads a script's directives, and the words of a submit command, which override them. `system`: whose words they are;
 * without it, the first directive says. Throws GryphusError 'bad-input' (with file and line), or 'usage' for a word.
 */
export function readScript(
  text: string,
  {
    file,
    system: given,
    words = [],
  }: { readonly file: string; readonly system?: System | undefined; readonly words?: readonly string[] },
): BatchScript {
  if (/^#!.*\r$/m.test(text)) {
    throw new GryphusError('bad-input', `${file} has DOS line endings, which no shell accepts.`, {
      suggestions: [`sed -i 's/\\r$//' ${file}`],
    });
  }
  const system = given ?? firstSystem(text);
  const interpreter = /^#!(.*)/.exec(text)?.[1]?.trim();
  if (system === undefined) return { system, wishes: noWishes('all'), file, warnings: [], interpreter };
  const dialect = DIALECTS[system];
  const wishes = noWishes(dialect.environment);
  const reader = new OptionReader(dialect, wishes, file);
  for (const directive of directivesOf(text, dialect, file)) reader.read(directive.words, directive.line);
  reader.read(words, 0);
  // Slurm gives a job no more nodes than it has tasks.
  if (system === 'slurm' && wishes.nodes !== undefined && wishes.tasks !== undefined)
    wishes.nodes = Math.min(wishes.nodes, wishes.tasks);
  const { shell } = wishes;
  if (shell !== undefined && interpreter !== undefined && interpreter.split(/\s+/)[0] !== shell.path)
    wishes.without.push({ ...shell.written, why: "the script's first line names what runs it" });
  return { system, wishes, file, warnings: foreign(text, system), interpreter };
}

/** Lines for other systems have no effect; the first of each is named. */
function foreign(text: string, system: System): { readonly line: number; readonly message: string }[] {
  const lines = text.split('\n');
  return SYSTEMS.filter((other) => other !== system).flatMap((other) => {
    const { prefix, title } = DIALECTS[other];
    const at = lines.findIndex((line) => prefix.test(line));
    if (at < 0) return [];
    return [
      {
        line: at + 1,
        message: `The script is read as ${DIALECTS[system].title}'s: its lines for ${title} have no effect.`,
      },
    ];
  });
}

function directivesOf(text: string, dialect: Dialect, file: string): Directive[] {
  const found: Directive[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    const prefix = dialect.prefix.exec(line)?.[0];
    if (prefix !== undefined) {
      const words = shellWords(withoutComment(line.slice(prefix.length)));
      if (words === undefined) throw wrong(file, i + 1, 'a quote is not closed');
      found.push({ line: i + 1, words });
    } else if (dialect.atTopOnly && !/^\s*(#|$)/.test(line)) break;
  }
  return found;
}

/** Text after a blank and a `#` outside quotes is a comment. */
function withoutComment(text: string): string {
  const words = /^(?:[^\s"'\\#]|\\.|"(?:[^"\\]|\\.)*"|'[^']*'|\s(?!\s*#)|(?<=\S)#)*/.exec(text)?.[0] ?? '';
  return /^\s*#/.test(text.slice(words.length)) ? words : text;
}

function wrong(file: string, line: number, what: string, suggestions: readonly string[] = []): GryphusError {
  if (line === 0) return new GryphusError('usage', `${what}.`, { suggestions });
  return new GryphusError('bad-input', `on Line ${line} of ${file}: ${what}`, { suggestions });
}

/** Takes option words into the wishes, by the dialect's table. */
class OptionReader {
  readonly #dialect: Dialect;
  readonly #wishes: Wishes;
  readonly #file: string;
  readonly #byName = new Map<string, Option>();

  constructor(dialect: Dialect, wishes: Wishes, file: string) {
    this.#dialect = dialect;
    this.#wishes = wishes;
    this.#file = file;
    for (const option of dialect.options) for (const name of option.names.split(' ')) this.#byName.set(name, option);
  }

  read(words: readonly string[], line: number): void {
    for (let i = 0; i < words.length; ) i += this.#one(words.slice(i), line);
  }

  /** Takes the first option; how many words it had. */
  #one(words: readonly string[], line: number): number {
    const [word = '', next] = words;
    if (!word.startsWith('-') || word === '-')
      throw wrong(this.#file, line, `'${word}' is not an option of ${this.#dialect.title}`);
    const { name, value: attached } = this.#split(word, line);
    const option = this.#byName.get(name);
    if (option === undefined) throw this.#unknown(name, line);
    const { value, used } = this.#value(option, name, attached, words, next, line);
    const shown = attached === undefined ? words.slice(0, used).join(' ') : word;
    this.#take(option, value, { option: shown, line }, words.slice(0, used));
    return used;
  }

  #split(word: string, line: number): { readonly name: string; readonly value?: string } {
    if (word.startsWith('--') && this.#dialect.long) {
      const equals = word.indexOf('=');
      const name = this.#whole(equals < 0 ? word : word.slice(0, equals), line);
      return equals < 0 ? { name } : { name, value: word.slice(equals + 1) };
    }
    // Grid Engine's and LSF's names have several letters.
    if (this.#byName.has(word) || this.#dialect.system === 'sge' || this.#dialect.system === 'lsf')
      return { name: word };
    return { name: word.slice(0, 2), value: word.slice(2) };
  }

  /** getopt_long accepts the beginning of a name if no other begins so. */
  #whole(name: string, line: number): string {
    if (this.#byName.has(name)) return name;
    const near = [...this.#byName].filter(([one]) => one.startsWith(name));
    const [first] = near;
    if (first && near.every(([, option]) => option === first[1])) return first[0];
    if (near.length > 1) throw wrong(this.#file, line, `${name} may mean ${near.map(([one]) => one).join(' or ')}`);
    return name;
  }

  #value(
    option: Option,
    name: string,
    attached: string | undefined,
    words: readonly string[],
    next: string | undefined,
    line: number,
  ) {
    if (option.value === undefined) {
      if (attached !== undefined) throw wrong(this.#file, line, `${name} takes no value`);
      return { value: '', used: 1 };
    }
    if (attached !== undefined) return { value: attached, used: 1 };
    if (name === '-pe') return { value: words.slice(1, 3).join(' '), used: Math.min(3, words.length) };
    if (option.value === 'optional') {
      const yesNo = !this.#dialect.long && next !== undefined && /^(y|yes|n|no)$/i.test(next);
      return yesNo ? { value: next, used: 2 } : { value: '', used: 1 };
    }
    if (next === undefined) throw wrong(this.#file, line, `${name} needs a value`);
    return { value: next, used: 2 };
  }

  #take(option: Option, value: string, written: Written, words: readonly string[]): void {
    switch (option.fate) {
      case 'refused':
        throw wrong(this.#file, written.line, `${written.option} is not supported: ${option.becomes}`);
      case 'without':
        this.#wishes.without.push({ ...written, why: option.becomes });
        return;
      case 'site':
        this.#wishes.siteOnly.push(written);
        this.#wishes.siteWords.push(...words);
        return;
      case 'done':
        try {
          option.take?.(this.#wishes, value, written);
        } catch (thrown) {
          if (!(thrown instanceof BadValue)) throw thrown;
          throw wrong(this.#file, written.line, `${written.option}: ${thrown.message}`);
        }
    }
  }

  #unknown(name: string, line: number): GryphusError {
    const near = didYouMean(name, this.#byName.keys());
    return wrong(
      this.#file,
      line,
      `${this.#dialect.title} has no option ${name}`,
      near === undefined ? [] : [`Did you mean ${near}?`],
    );
  }
}
