import { GryphusError } from '../errors.ts';
import { didYouMean } from '../util/did-you-mean.ts';
import type { KeyKind } from './kinds.ts';

/** One key of a configuration file. */
export interface Entry<T> {
  readonly kind: KeyKind<T>;
  /** As a user would write it in TOML; if absent, the key has no default value. */
  readonly preset: unknown;
  readonly doc: string;
}

/** Keys are dotted, as in TOML: `limits.queued` is `queued` in `[limits]`. */
export type Table = Readonly<Record<string, Entry<unknown>>>;
export type Values<T extends Table> = { readonly [K in keyof T]: T[K] extends Entry<infer V> ? V : never };

export function entry<T>(
  kind: KeyKind<T>,
  preset: string | number | boolean | readonly string[],
  doc: string,
): Entry<T>;
export function entry<T>(kind: KeyKind<T>, preset: undefined, doc: string): Entry<T | undefined>;
export function entry<T>(kind: KeyKind<T>, preset: unknown, doc: string): Entry<T | undefined> {
  return { kind, preset, doc };
}

/** A file's name and text, for messages. */
export interface Source {
  readonly file: string;
  readonly text: string;
}

type Tree = Readonly<Record<string, unknown>>;

export function presets<T extends Table>(table: T): Values<T> {
  return valuesOf(table, new Map(), undefined);
}

/**
 * The values that `table` finds in `tree` (parsed TOML); a GryphusError 'bad-config' names the file, the line and the
 * remedy.
 */
export function readTable<T extends Table>(table: T, tree: Tree, source: Source): Values<T> {
  const given = new Map(leavesOf(tree, table));
  for (const key of given.keys()) {
    if (key in table) continue;
    const near = didYouMean(key, Object.keys(table));
    throw refusal(source, key, `unknown key '${key}'`, [
      near ? `Did you mean '${near}'?` : 'See `gryphus config --docs` for every key.',
    ]);
  }
  return valuesOf(table, given, source);
}

function valuesOf<T extends Table>(
  table: T,
  given: ReadonlyMap<string, unknown>,
  source: Source | undefined,
): Values<T> {
  const values: Record<string, unknown> = {};
  for (const [key, { kind, preset }] of Object.entries(table)) {
    const raw = given.get(key);
    if (raw === undefined || !source) {
      values[key] = preset === undefined ? undefined : kind.read(preset);
      continue;
    }
    const value = kind.read(raw);
    if (value === undefined) {
      const hidden = kind.hides?.(raw);
      const { name, message } = kind.faultIn?.(raw) ?? { message: `must be ${kind.says}, not ${JSON.stringify(raw)}` };
      const at = name === undefined ? key : `${key}.${name}`;
      throw refusal(source, at, hidden ?? `'${at}' ${message}`, [
        preset === undefined
          ? `Correct or delete the line.`
          : `Correct the line, or delete it for the default: ${JSON.stringify(preset)}`,
      ]);
    }
    values[key] = value;
  }
  return values as Values<T>;
}

/** Dotted keys with their values; a TOML table where `table` expects a value counts as a value. */
export function* leavesOf(tree: Tree, table: Table, prefix = ''): Generator<[string, unknown]> {
  for (const [name, value] of Object.entries(tree)) {
    const key = `${prefix}${name}`;
    const isTree = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
    if (isTree && !(key in table)) yield* leavesOf(value as Tree, table, `${key}.`);
    else yield [key, value];
  }
}

/** A 'bad-config' that names the file and, if it is found there, the key's line. */
export function refusal(source: Source, key: string, complaint: string, suggestions: readonly string[]): GryphusError {
  const line = lineOf(source.text, key);
  return new GryphusError('bad-config', `${source.file}${line ? `, line ${line}` : ''}: ${complaint}.`, {
    suggestions,
  });
}

/**
 * The line, counted from 1, on which a TOML text sets the dotted `key`. Best effort: finds bare and simply quoted
 * names.
 */
export function lineOf(text: string, key: string): number | undefined {
  let section = '';
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[([^[\]]+)\]/.exec(line);
    if (header?.[1]) section = `${bare(header[1])}.`;
    if (section === `${key}.`) return index + 1;
    const name = /^\s*([\w."'-]+(?:\s*\.\s*[\w"'-]+)*)\s*=/.exec(line);
    if (!name?.[1]) continue;
    const full = section + bare(name[1]);
    if (full === key || key.startsWith(`${full}.`)) return index + 1;
  }
  return undefined;
}

function bare(name: string): string {
  return name
    .split('.')
    .map((part) => part.trim().replace(/^(["'])(.*)\1$/, '$2'))
    .join('.');
}
