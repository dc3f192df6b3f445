import { readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** One entry of an .Xauthority file (X manual, Xau). */
export interface XauthEntry {
  /** The display's number as text; empty: any. */
  readonly number: string;
  readonly name: string;
  readonly data: Buffer;
}

/** An incomplete file gives the entries before its break. */
export function parseXauthority(bytes: Buffer): XauthEntry[] {
  const entries: XauthEntry[] = [];
  let at = 0;
  const field = (): Buffer | undefined => {
    if (at + 2 > bytes.length) return undefined;
    const end = at + 2 + bytes.readUInt16BE(at);
    if (end > bytes.length) return undefined;
    const found = bytes.subarray(at + 2, end);
    at = end;
    return found;
  };
  while (at + 2 <= bytes.length) {
    at += 2;
    const [address, number, name, data] = [field(), field(), field(), field()];
    if (!address || !number || !name || !data) break;
    entries.push({ number: number.toString('latin1'), name: name.toString('latin1'), data });
  }
  return entries;
}

export const COOKIE = 'MIT-MAGIC-COOKIE-1';

/** The cookies that may open a display, and at last none. */
export function cookiesFor(display: string, env: NodeJS.ProcessEnv): (Buffer | undefined)[] {
  const cookies = xauthFiles(env).flatMap((file) =>
    entriesOf(file).flatMap(({ number, name, data }) =>
      name === COOKIE && (number === '' || number === display) ? [data] : [],
    ),
  );
  const different = [...new Map(cookies.map((cookie) => [cookie.toString('hex'), cookie])).values()];
  return [...different, undefined];
}

function entriesOf(file: string): XauthEntry[] {
  try {
    return parseXauthority(readFileSync(file));
  } catch {
    return [];
  }
}

/** Where X servers and display managers keep them; a worker of root's can read all. */
function xauthFiles(env: NodeJS.ProcessEnv): string[] {
  const runtime = namesIn('/run/user').flatMap((uid) => {
    const dir = join('/run/user', uid);
    const xauth = namesIn(dir).filter((name) => name.startsWith('xauth_') || name.startsWith('.mutter-Xwaylandauth'));
    return [join(dir, 'gdm', 'Xauthority'), ...xauth.map((name) => join(dir, name))];
  });
  return [
    ...(env['XAUTHORITY'] ? [env['XAUTHORITY']] : []),
    join(homedir(), '.Xauthority'),
    ...runtime,
    ...namesIn('/home').map((user) => join('/home', user, '.Xauthority')),
    ...namesIn('/run/lightdm').map((user) => join('/run/lightdm', user, 'xauthority')),
  ];
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
