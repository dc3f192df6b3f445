import type { ConditionScope } from './condition.ts';
import { IfStack } from './condition.ts';
import type { Expander } from './expand.ts';
import type { SourcePlace, SubmitWarning } from './fault.ts';
import { badInput } from './fault.ts';
import { LineReader, refuseReplaced } from './lines.ts';
import type { MacroTable } from './macros.ts';
import { queueArguments } from './queue-args.ts';
import { sourceText } from './source.ts';
import type { Statement } from './statement.ts';
import { parseIncludeOptions, parseStatement } from './statement.ts';
import { isMacroName, tokens } from './text.ts';
import type { SubmitWorld } from './world.ts';

const DEEPEST_INCLUDE = 20;

/** The settings of `use strict : …` (manual, "use strict"). */
const STRICT: Readonly<Record<string, readonly string[]>> = {
  false: ['false', 'false', 'false', 'false', 'false'],
  true: ['true', 'true', 'true', 'false', 'true'],
  harsh: ['true', 'true', 'true', 'true', 'true'],
};
const STRICT_NAMES = [
  'SubmitWarnEmptyMatches',
  'SubmitFailEmptyMatches',
  'SubmitWarnDuplicateMatches',
  'SubmitFailEmptyFields',
  'SubmitWarnEmptyFields',
];

export interface QueueStatement {
  /** As written after the word queue. */
  readonly text: string;
  readonly place: SourcePlace;
}

interface Source {
  readonly reader: LineReader;
  readonly from: SourcePlace | undefined;
  readonly depth: number;
}

interface Block {
  readonly name: string;
  readonly tag: string;
  readonly place: SourcePlace;
  readonly lines: string[];
}

export interface ReadScope {
  readonly macros: MacroTable;
  readonly expander: Expander;
  readonly world: SubmitWorld;
  readonly warnings: SubmitWarning[];
  /** The directory to which relative file names refer. */
  readonly cwd: string;
}

/** Reads the statements of a submit description into the macro table, up to one queue statement at a time. */
export class DescriptionReader {
  readonly reader: LineReader;
  readonly #scope: ReadScope;
  readonly #conditions: ConditionScope;

  constructor(text: string, file: string, scope: ReadScope) {
    this.reader = new LineReader(text, file);
    this.#scope = scope;
    this.#conditions = {
      expand: (condition) => scope.expander.expand(condition),
      lookup: (name) => scope.macros.lookup(name),
    };
  }

  /** Reads up to the next queue statement; `undefined` at the end. Ifs left open at a queue statement are forgotten. */
  next(): QueueStatement | undefined {
    return this.#read({ reader: this.reader, from: undefined, depth: 0 });
  }

  #read(source: Source): QueueStatement | undefined {
    const ifs = new IfStack();
    let block: Block | undefined;
    for (let line = source.reader.next(); line; line = source.reader.next()) {
      let text = line.text;
      if (text === '' || text.startsWith('#')) continue;
      const place = this.#place(source, line.line);
      this.#scope.expander.place = place;
      if (block) {
        if (text === `@${block.tag}`) {
          this.#define(block.name, block.lines.join('\n'), block.place);
          block = undefined;
        } else block.lines.push(text);
        continue;
      }
      if (text.startsWith(':') && (ifs.inside || /^:if(\s|$)/.test(text))) text = text.slice(1);
      const condition = ifs.take(text, this.#conditions);
      if (condition.wrong !== undefined) throw badInput(place, condition.wrong);
      if (condition.taken || !ifs.enabled) continue;
      const statement = parseStatement(text);
      if (statement.kind === 'block') block = this.#startBlock(statement, place);
      else if (statement.kind === 'bare' || statement.kind === 'other') return this.#queueLine(text, source, place);
      else this.#take(statement, source, place);
    }
    const end = this.#place(source, source.reader.line);
    if (block) throw badInput(end, `Found end-of-file while scanning for '@${block.tag}' in ${source.reader.file}`);
    if (ifs.inside) throw badInput(end, 'endif(s) not found before end-of-file');
    return undefined;
  }

  #place(source: Source, line: number): SourcePlace {
    return { file: source.reader.file, line, ...(source.from ? { from: source.from } : {}) };
  }

  #queueLine(text: string, source: Source, place: SourcePlace): QueueStatement {
    const args = queueArguments(text);
    if (args === undefined) {
      const first = text.split(/\s/)[0] ?? '';
      if (/^(JOB|PROVISIONER|FINAL|SERVICE|REJECT)$/i.test(first)) {
        throw badInput(place, `this is a DAG file: ${text}`, ['Submit it with gryphus dag submit.']);
      }
      throw badInput(place, `invalid queue statement, cannot parse: ${text}`, [
        ...(source.reader.isScript ? ['This is a script: name it as the executable of a submit file.'] : []),
        "A line is 'name = value', a queue statement, if, elif, else, endif, include, error or warning.",
      ]);
    }
    if (source.depth > 0) throw badInput(place, 'Queue statement not allowed in include file or command');
    return { text: args, place };
  }

  #startBlock(statement: { readonly name: string; readonly tag: string }, place: SourcePlace): Block {
    const name = this.#scope.expander.expand(statement.name);
    if (!isMacroName(name)) throw illegal(name, place);
    return { name, tag: statement.tag, place, lines: [] };
  }

  #take(statement: Exclude<Statement, { kind: 'bare' | 'other' | 'block' }>, source: Source, place: SourcePlace): void {
    switch (statement.kind) {
      case 'include':
        return this.#include(statement.options, statement.target, source, place);
      case 'use':
        return this.#use(statement.category, statement.names, place);
      case 'say':
        return this.#say(statement.error, statement.text, place);
      case 'append': {
        const name = this.#name(statement.name, place);
        const before = this.#scope.macros.lookup(name) ?? '';
        return this.#define(name, before === '' ? statement.value : before + statement.joint + statement.value, place);
      }
      case 'assign':
        return this.#define(this.#name(statement.name, place), statement.value, place);
    }
  }

  /** `+Attr` and `-Attr` are stored as `MY.Attr`. */
  #name(written: string, place: SourcePlace): string {
    const name = this.#scope.expander.expand(written);
    if (/^[+-]/.test(name)) return `MY.${name.slice(1)}`;
    if (!isMacroName(name)) throw illegal(name, place);
    return name;
  }

  #define(name: string, value: string, place: SourcePlace): void {
    this.#scope.macros.define(name, this.#scope.expander.expandSelf(value, name), place);
  }

  #say(error: boolean, text: string, place: SourcePlace): void {
    const message = this.#scope.expander.expand(text);
    if (error) throw badInput(place, message);
    this.#scope.warnings.push({ line: place.line, message });
  }

  #use(category: string, names: string, place: SourcePlace): void {
    for (const name of tokens(names)) {
      const values = category.toLowerCase() === 'strict' ? STRICT[name.toLowerCase()] : undefined;
      if (!values)
        throw badInput(place, `at use ${category}:${names}`, ['Only use strict : true, false or harsh is supported.']);
      STRICT_NAMES.forEach((knob, i) => this.#scope.macros.define(knob, values[i] ?? '', place, 'internal'));
    }
  }

  #include(optionText: string, target: string, source: Source, place: SourcePlace): void {
    const options = parseIncludeOptions(optionText);
    if (!options.ok) throw badInput(place, options.wrong);
    if (source.depth + 1 >= DEEPEST_INCLUDE) throw badInput(place, 'includes nested too deep');
    const name = this.#scope.expander.expand(target);
    const into = options.into === undefined ? undefined : this.#scope.expander.expand(options.into);
    const text = sourceText({ name, command: options.command, into }, this.#scope);
    if (text.ok) {
      this.#read({ reader: new LineReader(text.value, name), from: place, depth: source.depth + 1 });
    } else if (options.mustExist) throw badInput({ file: name, line: 0, from: place }, text.reason);
  }
}

function illegal(name: string, place: SourcePlace): Error {
  return badInput(place, `Illegal Identifier: <${name}>`, ['A name has letters, digits, _ and . only.']);
}

/** Lines given on the command line (`-append`), in which the operator is optional. */
export function readAppended(lines: readonly string[], scope: ReadScope): void {
  lines
    .flatMap((text) => text.split('\n'))
    .forEach((line, i) => {
      const place: SourcePlace = { file: '<append>', line: i + 1 };
      const text = line.trim();
      if (text === '' || text.startsWith('#')) return;
      refuseReplaced(text, place);
      const found = /^([^\s=:]+)\s*(?:[=:]\s*)?(.*)$/s.exec(text);
      const [, written = '', value = ''] = found ?? [];
      const name = scope.expander.expand(written);
      const plus = /^[+-]/.test(name);
      if ((value === '' && !/[=:]/.test(text)) || (!plus && !isMacroName(name))) {
        throw badInput(place, `cannot parse the -append line: ${text}`, ["Write it as 'name = value'."]);
      }
      const key = plus ? `MY.${name.slice(1)}` : name;
      scope.macros.define(key, scope.expander.expandSelf(value, key), place);
    });
}

/**
 * The items of a list on the following lines, up to one that begins with `)`; lines that begin with `#` are skipped.
 */
export function readItemLines(reader: LineReader): string[] | undefined {
  const items: string[] = [];
  for (let line = reader.next(); line; line = reader.next()) {
    if (line.text.startsWith('#')) continue;
    if (line.text.startsWith(')')) return items;
    items.push(line.text);
  }
  return undefined;
}
