import { existsSync } from 'node:fs';
import { GryphusError } from '../errors.ts';
import { makePrivateDirs, writeWhole } from '../util/private-file.ts';
import type { Paths } from './paths.ts';
import { SETTINGS } from './settings.ts';
import { leavesOf, lineOf, readTable } from './table.ts';
import { parseToml, readSource } from './toml.ts';

/** The keys that config.toml itself sets. */
export async function settingsInFile(paths: Paths): Promise<ReadonlySet<string>> {
  if (!existsSync(paths.configFile)) return new Set();
  return new Set([...leavesOf(await parseToml(readSource(paths.configFile, paths)), SETTINGS)].map(([key]) => key));
}

/**
 * Sets one key in config.toml, or removes it if `value` is undefined, and leaves the rest of the file as it is. Writes
 * nothing unless the result is valid. `value` is TOML, or a bare word for a string.
 */
export async function writeSetting(paths: Paths, key: string, value: string | undefined): Promise<void> {
  const text = existsSync(paths.configFile) ? readSource(paths.configFile, paths).text : '';
  const candidates = value === undefined ? [undefined] : [value, JSON.stringify(value)];
  let problem: unknown;
  for (const candidate of candidates) {
    const source = { file: paths.configFile, text: withSetting(text, key, candidate) };
    try {
      readTable(SETTINGS, await parseToml(source), source);
    } catch (error) {
      // An error about the value as typed is more useful than one about the quoted value.
      problem ??= error;
      if (isValueProblem(error)) problem = error;
      continue;
    }
    makePrivateDirs(paths.configDir);
    writeWhole(source.file, source.text);
    return;
  }
  throw of(problem, key);
}

/** An invalid new value is not the fault of any line in the file, so the error names no line. */
function of(problem: unknown, key: string): unknown {
  if (!(problem instanceof GryphusError) || !problem.message.includes(`'${key}'`)) return problem;
  return new GryphusError('bad-config', problem.message.replace(/^.*?, line \d+: (?=')/s, ''), {
    cause: problem,
    suggestions: ['Nothing was written.'],
  });
}

function isValueProblem(error: unknown): boolean {
  return error instanceof GryphusError && error.message.includes(' must be ');
}

/** The text with the key on a line of its own, in its section if there is one. */
export function withSetting(text: string, key: string, value: string | undefined): string {
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  const at = lineOf(text, key);
  if (at !== undefined) {
    const name = /^\s*[^=]*=/.exec(lines[at - 1] ?? '')?.[0] ?? '';
    const taken = linesOfValue(lines.slice(at - 1));
    const comment = taken === 1 ? commentOf(lines[at - 1] ?? '') : '';
    lines.splice(at - 1, taken, ...(value === undefined ? [] : [`${name} ${value}${comment}`]));
    return join(lines);
  }
  if (value === undefined) return text;
  const parts = key.split('.');
  for (let depth = parts.length - 1; depth > 0; depth--) {
    const section = parts.slice(0, depth).join('.');
    const header = lines.findIndex((line) => line.replaceAll(/\s/g, '').startsWith(`[${section}]`));
    if (header < 0) continue;
    lines.splice(header + 1, 0, `${parts.slice(depth).join('.')} = ${value}`);
    return join(lines);
  }
  const first = lines.findIndex((line) => line.trimStart().startsWith('['));
  lines.splice(first < 0 ? lines.length : first, 0, `${key} = ${value}`, ...(first < 0 ? [] : ['']));
  return join(lines);
}

const STRING = /"(?:\\.|[^"\\])*"|'[^']*'/g;

/** The comment that follows the value, with the blanks before it. */
function commentOf(line: string): string {
  const bare = line.replaceAll(STRING, (text) => 'x'.repeat(text.length));
  return line.slice(/\s*(?:#.*)?$/.exec(bare)?.index);
}

/** How many lines the value that begins on the first takes: more than one for a list that goes on. */
function linesOfValue(lines: readonly string[]): number {
  let open = 0;
  for (const [i, line] of lines.entries()) {
    const bare = line.replaceAll(STRING, '').replace(/#.*$/, '');
    open += bare.split('[').length - bare.split(']').length;
    if (open <= 0) return i + 1;
  }
  return 1;
}

function join(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}
