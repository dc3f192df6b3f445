import { stat } from 'node:fs/promises';
import { posix } from 'node:path';
import type { Client } from 'basic-ftp';
import { unplaceable } from '../place.ts';
import { sha256Of } from '../sha256.ts';
import type { Fetched } from './contract.ts';
import { Part } from './part.ts';
import { unreachable } from './trouble.ts';

/** What FTP and GridFTP have in common once the client has logged in. `url` is for messages. */

/** How long a server that has broken off the data connection may take to say why, in milliseconds. */
const WHY_MS = 2000;

/**
 * A server that refuses a file may reset the data connection before its refusal arrives by the control connection. The
 * client would end at the first of the two, and take the refusal for a lost connection.
 */
export function hearRefusals({ ftp }: Client): void {
  const close = ftp.closeWithError.bind(ftp);
  ftp.closeWithError = (error) => {
    if (error.message.endsWith('(data socket)')) setTimeout(close, WHY_MS, error);
    else close(error);
  };
}

export interface RemoteFile {
  readonly bytes: number;
  readonly version: string | undefined;
}

/** Size and time; the version is undefined if the server does not tell the time. */
export async function lookAt(client: Client, path: string): Promise<RemoteFile> {
  const bytes = await client.size(path);
  const changed = await client.lastMod(path).catch(() => undefined);
  return { bytes, version: changed && `${bytes} ${changed.toISOString()}` };
}

/** `check` looks at what arrived, and returns what is wrong with it. */
export async function download(
  client: Client,
  url: URL,
  { path, to, have }: { readonly path: string; readonly to: string; readonly have: string | undefined },
  check: (
    arrived: { readonly path: string; readonly bytes: number },
    before: RemoteFile,
  ) => Promise<string | undefined>,
): Promise<Fetched> {
  const before = await lookAt(client, path);
  if (before.version !== undefined && before.version === have) return { version: before.version, same: true };
  const part = new Part(to);
  const start = await part.begin(before.version);
  if (start < before.bytes || before.bytes === 0) {
    await part.write(start, (file) => client.downloadTo(file, path, start), before.bytes);
  }
  const wrong = await check({ path: part.path, bytes: (await stat(part.path)).size }, before);
  if (wrong !== undefined) {
    await part.drop();
    throw unreachable(url, wrong);
  }
  await part.finish();
  return { version: before.version, same: false };
}

/** Sends the file under a temporary name, and renames it if `check`, which throws, finds nothing wrong with it. */
export async function upload(
  client: Client,
  from: string,
  path: string,
  check: (waiting: string, sent: { readonly bytes: number; readonly sha256: string }) => Promise<void>,
): Promise<void> {
  const { size } = await stat(from).catch((thrown: unknown) => {
    throw unplaceable(from, thrown);
  });
  const sha256 = await sha256Of(from);
  // The name depends on the content, so that a part of another file is never continued.
  const waiting = posix.join(posix.dirname(path), `.gryphus-${sha256.slice(0, 24)}.part`);
  const there = await client.size(waiting).catch(() => 0);
  if (there > 0 && there < size) await client.appendFrom(from, waiting, { localStart: there });
  else if (there !== size || size === 0) await client.uploadFrom(from, waiting);
  await check(waiting, { bytes: size, sha256 });
  await client.rename(waiting, path).catch(async () => {
    // Some servers do not rename onto an existing file.
    await client.remove(path, true);
    await client.rename(waiting, path);
  });
}

/** Makes the directories of a path that are not there; whether that succeeded shows when the file is stored. */
export async function makeDirectories(client: Client, path: string): Promise<void> {
  for (let cut = path.indexOf('/', 1); cut > 0; cut = path.indexOf('/', cut + 1))
    await client.send(`MKD ${path.slice(0, cut)}`, true);
}

/** Removes a file, or an empty directory; nothing is said if it is not there. */
export async function removeAt(client: Client, path: string, what: 'file' | 'directory'): Promise<void> {
  await client.send(`${what === 'file' ? 'DELE' : 'RMD'} ${path}`, true);
}
