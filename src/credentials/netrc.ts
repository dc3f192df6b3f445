import { GryphusError } from '../errors.ts';
import { readSecretFile, wipe } from '../util/secret-file.ts';

export interface NetrcLogin {
  readonly user: string;
  readonly password: string;
}

/**
 * The log-in for a host from a file in the format of netrc (ftp(1), curl(1)): `machine HOST login NAME password WORD`,
 * or `default …` for any other host; words may be in double quotes. `undefined` if there is no such file or no line for
 * the host. A file that others can read is refused; errors name a line and never quote it.
 */
export function loginFor(path: string, host: string): NetrcLogin | undefined {
  let bytes: Buffer;
  try {
    bytes = readSecretFile(path, 'file of log-ins');
  } catch (thrown) {
    if (thrown instanceof GryphusError && thrown.code === 'not-found') return undefined;
    throw thrown;
  }
  try {
    const entries = parse(bytes.toString('utf8'), path);
    const found = entries.find((entry) => entry.host === host.toLowerCase()) ?? entries.find((entry) => !entry.host);
    if (!found) return undefined;
    if (found.login === undefined || found.password === undefined) {
      throw bad(
        path,
        found.line,
        `the entry of ${found.host ?? 'default'} has no ${found.login ? 'password' : 'login'}`,
      );
    }
    return { user: found.login, password: found.password };
  } finally {
    wipe(bytes);
  }
}

interface Entry {
  /** `undefined` for the default entry. */
  readonly host: string | undefined;
  readonly line: number;
  login?: string;
  password?: string;
}

interface Word {
  readonly text: string;
  readonly line: number;
}

function parse(text: string, path: string): Entry[] {
  const entries: Entry[] = [];
  const words = split(text);
  for (let i = 0; i < words.length; i++) {
    const { text: key, line } = words[i] ?? { text: '', line: 0 };
    if (key === 'default') {
      entries.push({ host: undefined, line });
      continue;
    }
    if (!['machine', 'login', 'password', 'account'].includes(key)) {
      throw bad(path, line, "a keyword is none of 'machine', 'default', 'login', 'password', 'account'");
    }
    const value = words[++i];
    if (value === undefined) throw bad(path, line, `'${key}' has no value after it`);
    if (key === 'machine') entries.push({ host: value.text.toLowerCase(), line });
    else if (key !== 'account') {
      const entry = entries.at(-1);
      if (!entry) throw bad(path, line, `'${key}' comes before the first machine`);
      if (key === 'login') entry.login = value.text;
      else entry.password = value.text;
    }
  }
  return entries;
}

function split(text: string): Word[] {
  return text.split('\n').flatMap((line, i) =>
    line.trimStart().startsWith('#')
      ? []
      : [...line.matchAll(/"((?:\\.|[^"\\])*)"|(\S+)/g)].map(([, quoted, bare]) => ({
          text: quoted === undefined ? (bare ?? '') : quoted.replaceAll(/\\(.)/g, '$1'),
          line: i + 1,
        })),
  );
}

function bad(path: string, line: number, why: string): GryphusError {
  return new GryphusError('bad-config', `${path}, line ${line}: ${why}.`, {
    suggestions: ['Write each as `machine HOST login NAME password WORD`.'],
  });
}
