import { asError, GryphusError } from '../errors.ts';
import { readOwnText } from '../util/owned-file.ts';
import type { Paths } from './paths.ts';
import type { Source } from './table.ts';

/** Reads a file of the configuration; 'not-permitted' if others could have written it. */
export function readSource(file: string, { configDir }: Pick<Paths, 'configDir'>): Source {
  try {
    return { file, text: readOwnText(file, configDir) };
  } catch (cause) {
    if (cause instanceof GryphusError) throw cause;
    throw new GryphusError('bad-config', `Cannot read ${file}: ${asError(cause).message}.`, { cause });
  }
}

/** Parses TOML into plain values; a GryphusError 'bad-config' with file, line and column if it is invalid. */
export async function parseToml(source: Source): Promise<Record<string, unknown>> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    return parse(source.text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const what = cause.message.split('\n')[0]?.replace('Invalid TOML document: ', '') ?? 'not TOML';
    throw new GryphusError('bad-config', `${source.file}, line ${cause.line}, column ${cause.column}: ${what}.`, {
      suggestions: ['Strings need quotes: key = "value".'],
      cause,
    });
  }
}
