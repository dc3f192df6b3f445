import * as z from 'zod';
import { maybe, type Read } from '../util/schema.ts';
import { badInput } from './fault.ts';
import { glob, hasMagic } from './glob.ts';
import type { QueueArgs } from './queue-args.ts';
import { parseQueueArgs, QueueError } from './queue-args.ts';
import type { QueueStatement, ReadScope } from './read.ts';
import { readItemLines } from './read.ts';
import { LineReader } from './lines.ts';
import { splitRow } from './rows.ts';
import { TABLE_OPTIONS } from './rows.ts';
import { SLICE } from './slice.ts';
import { absolutePath, sourceText } from './source.ts';
import { isMacroName, tokens } from './text.ts';
import type { WorldResult } from './world.ts';

/** A queue statement with all its items, from which a cluster is made. JSON. */
export const QUEUE_PLAN = z.strictObject({
  count: z.int(),
  vars: z.array(z.string()),
  /** `undefined` if the statement has no list, so that its jobs differ only in number. */
  items: z.optional(z.array(z.string())),
  slice: maybe(SLICE),
  table: maybe(TABLE_OPTIONS),
});
export type QueuePlan = Read<typeof QUEUE_PLAN>;

function args(line: QueueStatement, scope: ReadScope): QueueArgs {
  scope.expander.place = line.place;
  try {
    return parseQueueArgs(scope.expander.expand(line.text));
  } catch (thrown) {
    if (!(thrown instanceof QueueError)) throw thrown;
    throw badInput(line.place, thrown.message, [
      'Write queue [COUNT] [VARIABLES in|from|matching LIST], as in queue 10, or queue x in (a b c).',
    ]);
  }
}

function itemsOf(lines: readonly string[], parsed: QueueArgs): readonly string[] {
  return parsed.mode === 'from' ? lines : lines.flatMap((line) => tokens(line));
}

/** The text of a list; a directory has no lines. */
function itemText(name: string, scope: ReadScope): WorldResult<string> {
  if (name === '-') return scope.world.stdin();
  if (scope.world.look(absolutePath(name, scope.cwd))?.directory) return { ok: true, value: '' };
  return sourceText({ name }, scope);
}

function moreItems(parsed: QueueArgs, line: QueueStatement, reader: LineReader, scope: ReadScope): readonly string[] {
  if (parsed.more?.kind === 'lines') {
    const lines = readItemLines(reader);
    if (lines) return itemsOf(lines, parsed);
    throw badInput(
      line.place,
      `Reached end of file without finding closing brace ')' for Queue command on line ${line.place.line}`,
      ["The ')' must end the line of a list in one line, and stand alone after a list over several lines."],
    );
  }
  if (parsed.more?.kind !== 'source') return [];
  const { name } = parsed.more;
  const text = itemText(name, scope);
  if (!text.ok)
    throw badInput(line.place, text.reason, ['Name a file with one item per line, or a command with | at the end.']);
  return itemsOf(textLines(text.value, name), parsed);
}

function textLines(text: string, name: string): string[] {
  const lines: string[] = [];
  const reader = new LineReader(text, name);
  for (let line = reader.next(); line; line = reader.next()) lines.push(line.text);
  return lines;
}

function flag(scope: ReadScope, name: string, fallback: boolean): boolean {
  const value = scope.macros.lookup(name) ?? scope.macros.lookup(name.replace(/(?!^)[A-Z]/g, '_$&'));
  return value === undefined || value === '' ? fallback : /^(true|yes|1)$/i.test(scope.expander.expand(value));
}

function whichKind(parsed: QueueArgs, line: QueueStatement, scope: ReadScope): 'files' | 'dirs' | 'any' {
  if (parsed.matching) return parsed.matching;
  const raw = scope.macros.lookup('SubmitMatchDirectories') ?? scope.macros.lookup('submit_match_directories');
  const said = raw === undefined ? '' : scope.expander.expand(raw).toLowerCase();
  if (said === '' || said === 'yes' || said === 'true') return 'any';
  if (said === 'only') return 'dirs';
  if (said === 'never' || said === 'no' || said === 'false') return 'files';
  throw badInput(line.place, `${said} is not a valid value for SubmitMatchDirectories`);
}

function matches(patterns: readonly string[], parsed: QueueArgs, line: QueueStatement, scope: ReadScope): string[] {
  const kind = whichKind(parsed, line, scope);
  const found: string[] = [];
  const seen = new Map<string, number>();
  for (const pattern of patterns) {
    // A name without wildcards is accepted as it is; only matches of wildcards are filtered by kind.
    const named = kind === 'dirs' && !hasMagic(pattern.slice(pattern.lastIndexOf('/') + 1));
    const names = glob(pattern, scope.cwd, scope.world).filter((name) => {
      return kind === 'any' || named || name.endsWith('/') === (kind === 'dirs');
    });
    if (names.length === 0 && flag(scope, 'SubmitFailEmptyMatches', false)) {
      throw badInput(line.place, `no matches for pattern(s): '${pattern}'`);
    }
    if (names.length === 0 && flag(scope, 'SubmitWarnEmptyMatches', true)) {
      scope.warnings.push({ line: line.place.line, message: `'${pattern}' does not match any files` });
    }
    for (const name of names) {
      const before = seen.get(name);
      if (before !== undefined && !flag(scope, 'SubmitAllowDuplicateMatches', false)) {
        const message = `'${name}' matching pattern '${pattern}' is a duplicate of item ${before}, skipping`;
        if (flag(scope, 'SubmitWarnDuplicateMatches', true)) scope.warnings.push({ line: line.place.line, message });
      } else {
        seen.set(name, found.length);
        found.push(name);
      }
    }
  }
  return found;
}

function withHeader(plan: QueuePlan, line: QueueStatement): QueuePlan {
  const { table, items = [] } = plan;
  if (!table || table.header < 0 || table.header >= items.length) return plan;
  const vars = splitRow(items[table.header] ?? '', Number.POSITIVE_INFINITY, table);
  const wrong = vars.filter((name) => !isMacroName(name));
  if (vars.length === 0 || wrong.length > 0) {
    throw badInput(line.place, `the table's columns have invalid names: ${wrong.join(',')}`, [
      'A name has letters, digits, _ and . only.',
    ]);
  }
  const skip = table.header > 0 ? table.header - 1 + table.skip : 0;
  return { ...plan, vars, items: items.filter((_, i) => i !== table.header).slice(skip) };
}

/** Reads everything a queue statement refers to: the following lines, a file, a command's output, matching files. */
export function planQueue(line: QueueStatement, reader: LineReader, scope: ReadScope): QueuePlan {
  const parsed = args(line, scope);
  if (parsed.mode === 'none') return { count: parsed.count, vars: [], items: undefined };
  const listed = [...parsed.items, ...moreItems(parsed, line, reader, scope)];
  return withHeader(
    {
      count: parsed.count,
      vars: parsed.vars.length === 0 ? ['Item'] : parsed.vars,
      items: parsed.mode === 'matching' ? matches(listed, parsed, line, scope) : listed,
      ...(parsed.slice ? { slice: parsed.slice } : {}),
      ...(parsed.table ? { table: parsed.table } : {}),
    },
    line,
  );
}
