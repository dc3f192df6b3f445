import { GryphusError } from '../../errors.ts';

/** Whether a name in a transfer list is a URL (HTCondor's manual, `transfer_input_files`). */
export function isUrl(name: string): boolean {
  return /^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(name);
}

/** Schemes that need nothing of ours at the site: programs on any system can fetch them. */
export const PLAIN_SCHEMES: readonly string[] = ['http', 'https', 'ftp'];

/**
 * Parses a file's URL. Throws a GryphusError 'bad-input' with one sentence and the remedy if its scheme is not one of
 * `schemes`, or if it has no host, no file name, or a password, which is then not repeated.
 */
export function parseFileUrl(text: string, schemes: readonly string[]): URL {
  const shown = withoutLogin(text);
  const bad = (why: string, remedy: string) =>
    new GryphusError('bad-input', `The URL ${shown} ${why}.`, { suggestions: [remedy] });
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw bad('cannot be read', 'Write it as https://host/path/file, with special characters as %XX.');
  }
  const scheme = schemeOf(url);
  if (!schemes.includes(scheme)) {
    throw bad(`has the scheme '${scheme}', which cannot be fetched`, `Use one of ${schemes.join(', ')}.`);
  }
  if (url.username !== '' || url.password !== '') {
    throw bad('contains a log-in, which every list of jobs would show', `Leave it out: ${netrcLine(url.hostname)}`);
  }
  if (url.hostname === '') throw bad('has no host', 'Write it as https://host/path/file.');
  const path = decoded(url.pathname);
  if (path === undefined) throw bad('has a % without two hexadecimal digits after it', 'Write the % itself as %25.');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a line end would start a new FTP command
  if (/[\0-\x1f\x7f]/.test(path)) throw bad('has a control character in its path', 'Give the file another name.');
  return url;
}

/** The file's name in the job's directory: the last part of the URL's path. 'bad-input' if it has none. */
export function fileNameOf(url: URL): string {
  const name = decoded(url.pathname)?.split('/').at(-1) ?? '';
  if (name !== '' && name !== '.' && name !== '..') return name;
  throw new GryphusError('bad-input', `The URL ${withoutLogin(url.href)} has no file name.`, {
    suggestions: ['Name the file at its end; directories cannot be fetched.'],
  });
}

export function schemeOf(url: URL): string {
  return url.protocol.slice(0, -1).toLowerCase();
}

/** The decoded path; for FTP without the first slash, as it is relative to the log-in's directory (RFC 1738). */
export function pathOf(url: URL): string {
  return decoded(url.pathname) ?? url.pathname;
}

/** Removes what may be a password, so that the text can be shown. */
export function withoutLogin(text: string): string {
  return text.replace(/^([A-Za-z][A-Za-z0-9+.-]*:\/\/)[^/?#]*@/, '$1');
}

/** How to provide a log-in. */
export function netrcLine(host: string): string {
  return `write a line \`machine ${host} login NAME password WORD\` into the file netrc (mode 0600) beside config.toml.`;
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
