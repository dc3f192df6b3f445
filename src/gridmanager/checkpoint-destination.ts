import { constants, existsSync, statSync } from 'node:fs';
import { chmod, copyFile, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { GryphusError } from '../errors.ts';
import type { Attrs } from '../job/attrs.ts';
import { type AttemptKey, formatJobId, type JobId } from '../job/ids.ts';
import { readNumber, readString } from '../job/values.ts';
import type { JobRecord } from '../queue/api.ts';
import type { RemoteCheckpoint, RemoteFile } from '../staging/checkpoints.ts';
import { within } from '../staging/place.ts';
import { sha256Of } from '../staging/sha256.ts';
import { isUrl } from '../staging/url/file-url.ts';
import { keyOf, type SiteContext } from './context.ts';

/** `checkpoint_destination`: the URL below which a job's checkpoints are stored; `undefined`: at home. */
export function checkpointDestination(ad: Attrs): string | undefined {
  const to = readString(ad, 'CheckpointDestination');
  return to !== undefined && isUrl(to) ? to.replace(/\/+$/, '') : undefined;
}

/**
 * Moves a checkpoint that has been kept here to its destination: its files, and last of all their list, without which it
 * does not count (HTCondor's MANIFEST, in the format of sha256sum). The one before is removed there. Rejects as uploads
 * of outputs do. Idempotent.
 */
export async function sendCheckpoint(ctx: SiteContext, job: JobRecord): Promise<void> {
  const destination = checkpointDestination(job.attrs);
  const { checkpoints } = ctx.spool;
  const directory = destination && (await checkpoints.filesFor(job.id, job.attempt + 1));
  if (destination === undefined || directory === undefined) return;
  if (existsSync(directory)) await sendFiles(ctx, job, destination, directory);
  const before = await checkpoints.earlierRemote(job.id, job.attempt);
  if (before && (await removeQuietly(ctx, before, job.attrs, false)))
    await checkpoints.forgetEarlierRemote(job.id, job.attempt);
}

async function sendFiles(ctx: SiteContext, job: JobRecord, destination: string, directory: string): Promise<void> {
  const number = String(readNumber(job.attrs, 'NumCkpts') ?? 0).padStart(4, '0');
  const url = `${destination}/${ctx.agent}_${formatJobId(job.id)}/${number}`;
  const files: RemoteFile[] = [];
  for (const name of await namesIn(directory)) {
    const path = within(directory, name);
    files.push({ name, sha256: await sha256Of(path), executable: (statSync(path).mode & 0o100) !== 0 });
    await put(ctx, job, path, urlOf(url, name));
  }
  const manifest = `${url}/MANIFEST.${number}`;
  const list = join(await ctx.spool.prepare(keyOf(ctx, job)), 'MANIFEST');
  await writeFile(list, files.map(({ name, sha256 }) => `${sha256} *${name}\n`).join(''), { mode: 0o600 });
  await put(ctx, job, list, manifest);
  await ctx.spool.checkpoints.moveAway(job.id, job.attempt, { url, manifest, files });
}

async function namesIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.flatMap((one) => (one.isFile() ? [relative(directory, join(one.parentPath, one.name))] : [])).sort();
}

async function put(ctx: SiteContext, job: JobRecord, from: string, to: string): Promise<void> {
  const key: AttemptKey = keyOf(ctx, job);
  await ctx.urls.outputs.store(key, from, to, readString(job.attrs, 'x509userproxy'));
}

function urlOf(directory: string, name: string): string {
  return `${directory}/${name.split('/').map(encodeURIComponent).join('/')}`;
}

/**
 * Brings the checkpoint back from which an attempt goes on. If it is still being fetched, returns a message saying so.
 * Rejects if it cannot be fetched, or is not what was stored.
 */
export async function checkpointBack(ctx: SiteContext, job: JobRecord): Promise<string | undefined> {
  const { checkpoints } = ctx.spool;
  // Also if its destination has been edited since.
  const found = await checkpoints.remoteOf(job.id, job.attempt);
  if (!found || existsSync(join(found.directory, 'files'))) return undefined;
  const { remote, directory } = found;
  const here: { readonly file: RemoteFile; readonly path: string }[] = [];
  let coming: string | undefined;
  for (const file of remote.files) {
    const url = urlOf(remote.url, file.name);
    const look = ctx.urls.inputs.look(url, readString(job.attrs, 'x509userproxy'), () => ctx.wake('submit'));
    if (look.is === 'refused') throw look.error;
    if (look.is === 'coming') coming ??= look.why;
    else here.push({ file, path: look.path });
  }
  if (coming !== undefined) return coming;
  const fresh = join(directory, 'files.new');
  await rm(fresh, { recursive: true, force: true });
  for (const { file, path } of here) {
    const to = within(fresh, file.name);
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await copyFile(path, to, constants.COPYFILE_FICLONE);
    if ((await sha256Of(to)) !== file.sha256)
      throw new GryphusError(
        'input-missing',
        `The checkpoint ${urlOf(remote.url, file.name)} is not what was stored there.`,
        {
          suggestions: ['Put the right file back and `gryphus release` the job, or submit it again to start anew.'],
        },
      );
    await chmod(to, file.executable ? 0o700 : 0o600);
  }
  await rename(fresh, join(directory, 'files'));
  return undefined;
}

/**
 * Removes a job's checkpoints, here and at their destination. What a server does not remove now is tried again with the
 * next checkpoint of any job.
 */
export async function dropCheckpoints(ctx: SiteContext, id: JobId, attrs?: Attrs): Promise<void> {
  const { checkpoints } = ctx.spool;
  let removed = true;
  for (const remote of await checkpoints.remotes(id))
    removed = (await removeQuietly(ctx, remote, attrs, true)) && removed;
  if (removed) await checkpoints.remove(id);
}

/** False if the server may do it later. */
async function removeQuietly(
  ctx: SiteContext,
  remote: RemoteCheckpoint,
  attrs: Attrs | undefined,
  last: boolean,
): Promise<boolean> {
  const proxy = attrs && readString(attrs, 'x509userproxy');
  const remove = (url: string, what: 'file' | 'directory') => ctx.urls.outputs.remove(url, what, proxy);
  try {
    // Without its list it is none.
    await remove(remote.manifest, 'file');
    for (const { name } of remote.files) await remove(urlOf(remote.url, name), 'file');
    const inner = new Set(
      remote.files.flatMap(({ name }) => (name.includes('/') ? [name.slice(0, name.lastIndexOf('/'))] : [])),
    );
    for (const directory of inner) await remove(urlOf(remote.url, directory), 'directory');
    await remove(remote.url, 'directory');
    // By WebDAV, a directory goes with all that is in it.
    if (last) await remove(remote.url.slice(0, remote.url.lastIndexOf('/')), 'directory');
    return true;
  } catch (thrown) {
    if (!(thrown instanceof GryphusError)) throw thrown;
    return thrown.code !== 'url-unreachable';
  }
}
