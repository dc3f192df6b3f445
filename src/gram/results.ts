import { closeSync, createReadStream, createWriteStream, existsSync, openSync } from 'node:fs';
import { copyFile, mkdir, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type ExitRecord, readExit } from '../site/exit-record.ts';
import type { FetchedFile, FetchOutcome, FetchRequest } from '../site/contract.ts';
import { askedFor } from '../staging/asked-for.ts';
import { makeParents, partOf, unplaceable, within } from '../staging/place.ts';
import { STREAM_FILES, type StreamName } from '../staging/streams.ts';
import { chosenMode } from '../util/file-mode.ts';
import { plainName } from '../util/plain-name.ts';
import { readAt, type TarMember, tarMembers } from '../staging/tar.ts';

/** The contents of a job's package of results, once it has arrived whole. */
export interface Results {
  readonly path: string;
  readonly members: readonly TarMember[];
  readonly exit: ExitRecord;
}

const LONGEST_RECORD = 64 * 1024;

/** `undefined` if the package is missing or incomplete (its last file is `end`). */
export function readResults(path: string): Results | undefined {
  if (!existsSync(path)) return undefined;
  const fd = openSync(path, 'r');
  try {
    const members = tarMembers(fd);
    const record = members?.find(({ name }) => name === 'exit');
    if (members?.at(-1)?.name !== 'end' || record === undefined || record.bytes > LONGEST_RECORD) return undefined;
    const exit = readExit(readAt(fd, record.offset, record.bytes).toString('utf8').trim());
    return exit && { path, members, exit };
  } finally {
    closeSync(fd);
  }
}

/** Unpacks the requested files into the attempt's directory; names not in the package are reported as missing. */
export async function unpack(results: Results, request: FetchRequest): Promise<FetchOutcome> {
  const files: FetchedFile[] = [];
  const missing: string[] = [];
  await mkdir(request.into, { recursive: true, mode: 0o700 });
  for (const stream of ['stdout', 'stderr'] as const) {
    const member = request[stream] ? results.members.find(({ name }) => name === stream) : undefined;
    if (member)
      files.push(await take(results, member, { name: stream, kind: stream, at: STREAM_FILES[stream] }, request));
  }
  const inWork = results.members.filter(({ name }) => name.startsWith('work/'));
  const asked = askedFor(request);
  const found = new Set<string>();
  for (const member of inWork) {
    const name = asked(member.name.slice(5));
    if (name === undefined) continue;
    found.add(name);
    files.push(await take(results, member, { name, kind: 'output', at: name }, request));
  }
  if (request.outputs !== 'new') {
    for (const output of request.outputs) {
      const plain = plainName(output);
      const below = (name: string) => name === plain || plain === '' || name.startsWith(`${plain}/`);
      if (plain === undefined || ![...found].some(below)) missing.push(output);
    }
  }
  if (missing.length === 0) return { ok: true, files };
  const message = `The job did not create ${missing.map((name) => `'${name}'`).join(', ')}.`;
  return { ok: false, refusal: { kind: 'never', code: 'output-missing', message }, missing, files };
}

/** For a job whose results never arrived: as much of its streams as it sent while running. */
export async function unpackStreams(
  live: (stream: StreamName) => string,
  request: FetchRequest,
): Promise<FetchOutcome> {
  const files: FetchedFile[] = [];
  await mkdir(request.into, { recursive: true, mode: 0o700 });
  for (const stream of ['stdout', 'stderr'] as const) {
    if (!request[stream]) continue;
    const path = join(request.into, STREAM_FILES[stream]);
    try {
      if (existsSync(live(stream))) await copyFile(live(stream), path);
      else await writeFile(path, '', { mode: 0o600 });
    } catch (thrown) {
      throw unplaceable(path, thrown);
    }
    files.push({ name: stream, kind: stream, path, bytes: (await stat(path)).size, executable: false });
  }
  return { ok: true, files };
}

async function take(
  results: Results,
  member: TarMember,
  to: { readonly name: string; readonly kind: FetchedFile['kind']; readonly at: string },
  request: FetchRequest,
): Promise<FetchedFile> {
  const path = within(request.into, to.at);
  await makeParents(request.into, path);
  const executable = to.kind === 'output' && (member.mode & 0o100) !== 0;
  const waiting = partOf(path);
  const end = member.offset + member.bytes - 1;
  const from = member.bytes === 0 ? [] : createReadStream(results.path, { start: member.offset, end });
  try {
    await pipeline(from, createWriteStream(waiting, { mode: executable ? 0o700 : 0o600 }));
    await rename(waiting, path);
  } catch (thrown) {
    throw unplaceable(path, thrown);
  }
  const mode = to.kind === 'output' ? chosenMode(member.mode) : {};
  return { name: to.name, kind: to.kind, path, bytes: member.bytes, executable, ...mode };
}
