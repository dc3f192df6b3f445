import { existsSync } from 'node:fs';
import { GryphusError } from '../errors.ts';
import { makePrivateDirs, writeWhole } from '../util/private-file.ts';
import type { Paths } from './paths.ts';
import { SETTINGS } from './settings.ts';
import { leavesOf, lineOf, readTable } from './table.ts';
import { parseToml, readSource } from './toml.ts';

/** The keys that config.toml sets itself. */
export async function settingsInFile(paths: Paths): Promise<ReadonlySet<string>> {
  if (!existsSync(paths.configFile)) return new Set();
  return new Set([...leavesOf(await parseToml(readSource(paths.configFile)), SETTINGS)].map(([key]) => key));
}

/**
 * Sets one key in config.toml (`undefined` takes it out) and leaves the rest of the file as it is. Nothing is written
 * unless the result reads back well; `value` is TOML, or a bare word for a string.
 */
export async function writeSetting(paths: Paths, key: string, value: string | undefined): Promise<void> {
  const text = existsSync(paths.configFile) ? readSource(paths.configFile).text : '';
  const candidates = value === undefined ? [undefined] : [value, JSON.stringify(value)];
  let problem: unknown;
  for (const candidate of candidates) {
    const source = { file: paths.configFile, text: withSetting(text, key, candidate) };
    try {
      readTable(SETTINGS, await parseToml(source), source);
    } catch (error) {
      // The complaint about the value as it was typed says more than that about the quoted one.
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

/** What is wrong with a value that was to be written is no fault of a line that is there. */
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

/** The text with the key set on its own line, in its section where there is one. */
export function withSetting(text: string, key: string, value: string | undefined): string {
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  const at = lineOf(text, key);
  if (at !== undefined) {
    const name = /^\s*[^=]*=/.exec(lines[at - 1] ?? '')?.[0] ?? '';
    lines.splice(at - 1, 1, ...(value === undefined ? [] : [`${name} ${value}`]));
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

function join(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}
