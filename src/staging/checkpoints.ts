import { constants, existsSync } from 'node:fs';
import { appendFile, copyFile, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import { formatJobId, type JobId, parseJobId } from '../job/ids.ts';
import type { FetchedFile } from '../site/contract.ts';
import { flushTree } from '../util/flush-tree.ts';
import { flushDir, makeDirs } from '../util/private-file.ts';
import { CHECKPOINT_IMAGE } from './asked-for.ts';
import { completeImage, imageIn } from './image.ts';
import { makeParents, unplaceable, within } from './place.ts';

type Stream = 'stdout' | 'stderr';

/** Where the files of a checkpoint are that was stored elsewhere (`checkpoint_destination`). */
export interface RemoteCheckpoint {
  /** The URL of its directory. */
  readonly url: string;
  /** The URL of the list of its files. */
  readonly manifest: string;
  readonly files: readonly RemoteFile[];
}

export interface RemoteFile {
  readonly name: string;
  readonly sha256: string;
  readonly executable: boolean;
}

const REMOTE_FILE = 'remote.json';
const EARLIER_FILE = 'earlier.json';

const REMOTE = z.strictObject({
  url: z.string(),
  manifest: z.string(),
  files: z.array(z.strictObject({ name: z.string(), sha256: z.string(), executable: z.boolean() })),
});

/** In a parallel job's checkpoint, each node's files are in a directory of its own. */
const NODE_FILES = /^node\.(\d+)$/;

/** The directories of files in that of a checkpoint, and which node of a parallel job left them. */
export async function savedBy(
  saved: string,
): Promise<readonly { readonly path: string; readonly node: number | undefined }[]> {
  const nodes = (await readdir(saved).catch(() => [])).flatMap((name) => {
    const node = NODE_FILES.exec(name)?.[1];
    return node === undefined ? [] : [{ path: join(saved, name), node: Number(node) }];
  });
  return nodes.length > 0 && existsSync(join(saved, '..', BY_NODES)) ? nodes : [{ path: saved, node: undefined }];
}

/** A file beside the files of a checkpoint that says that they are those of several nodes. */
const BY_NODES = 'nodes';

/**
 * The last checkpoints of jobs: `<root>/<cluster>.<proc>/<attempt>/` with the files under
 * `files/`, and everything that the job had written to its streams. A checkpoint is stored atomically.
 */
export class Checkpoints {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** The directory of the files that an attempt continues from; `undefined`: it starts from the beginning. */
  async filesFor(id: JobId, attempt: number): Promise<string | undefined> {
    const last = await this.#before(id, attempt);
    return last === undefined ? undefined : join(last, 'files');
  }

  /** The last checkpoint before an attempt that is stored elsewhere, and its directory here. */
  async remoteOf(
    id: JobId,
    attempt: number,
  ): Promise<{ readonly remote: RemoteCheckpoint; readonly directory: string } | undefined> {
    const directory = await this.#before(id, attempt);
    if (directory === undefined) return undefined;
    const remote = await readRemote(join(directory, REMOTE_FILE));
    return remote && { remote, directory };
  }

  /** Records that a checkpoint is stored elsewhere: its files here are no longer needed. */
  async moveAway(id: JobId, attempt: number, remote: RemoteCheckpoint): Promise<void> {
    const directory = join(this.#of(id), String(attempt));
    const fresh = join(directory, `${REMOTE_FILE}.new`);
    await writeFile(fresh, JSON.stringify(remote), { mode: 0o600, flush: true });
    await rename(fresh, join(directory, REMOTE_FILE));
    flushDir(directory);
    await rm(join(directory, 'files'), { recursive: true, force: true });
  }

  /** What is stored elsewhere of a job's checkpoints. */
  async remotes(id: JobId): Promise<readonly RemoteCheckpoint[]> {
    const attempts = await this.#attempts(id);
    const all = attempts.flatMap((name) => [join(name, EARLIER_FILE), join(name, REMOTE_FILE)]);
    const found = await Promise.all(all.map((name) => readRemote(join(this.#of(id), name))));
    return found.flatMap((one) => one ?? []);
  }

  /** What is still stored elsewhere of the checkpoint before the one that an attempt saved. */
  async earlierRemote(id: JobId, attempt: number): Promise<RemoteCheckpoint | undefined> {
    return readRemote(join(this.#of(id), String(attempt), EARLIER_FILE));
  }

  async forgetEarlierRemote(id: JobId, attempt: number): Promise<void> {
    await rm(join(this.#of(id), String(attempt), EARLIER_FILE), { force: true });
  }

  /** Stores what an attempt saved, replacing what was saved before. Rejects with 'disk-full' or 'output-unwritable'. */
  async keep(id: JobId, attempt: number, files: readonly FetchedFile[]): Promise<void> {
    const to = join(this.#of(id), String(attempt));
    // It was stored before a crash.
    if (await there(to)) return;
    const fresh = `${to}.new`;
    try {
      await rm(fresh, { recursive: true, force: true });
      makeDirs(dirname(to));
      const saved = join(fresh, 'files');
      await mkdir(saved, { recursive: true, mode: 0o700 });
      if (files.some(({ node }) => node !== undefined)) await writeFile(join(fresh, BY_NODES), '', { mode: 0o600 });
      for (const { kind, name, path, node } of files) {
        if (kind !== 'output') continue;
        const place = within(saved, node === undefined ? name : `node.${node}/${name}`);
        await makeParents(saved, place);
        await copyFile(path, place, constants.COPYFILE_FICLONE);
      }
      const first = Math.min(...files.flatMap(({ node }) => node ?? []));
      for (const { kind, path, node } of files) {
        if (kind === 'output') continue;
        const whole = await this.joined(id, attempt, kind, path, node);
        if (node !== undefined) await copyFile(whole, join(fresh, streamOf(kind, node)));
        if (node === undefined || node === first) await copyFile(whole, join(fresh, kind));
      }
      const before = await this.#before(id, attempt);
      const image = imageIn(join(saved, CHECKPOINT_IMAGE));
      // Its worker sends only what has changed since the image that it was given.
      if (existsSync(image)) completeImage(image, before && imageIn(join(before, 'files', CHECKPOINT_IMAGE)));
      // What is stored elsewhere of the one before is still to be removed there.
      if (before !== undefined && (await there(join(before, REMOTE_FILE))))
        await copyFile(join(before, REMOTE_FILE), join(fresh, EARLIER_FILE));
      // The one before is removed, and the site deletes its own: not before this one survives a power failure.
      await flushTree(fresh);
      await rename(fresh, to);
      flushDir(dirname(to));
      if (before !== undefined) await rm(before, { recursive: true, force: true });
    } catch (thrown) {
      throw thrown instanceof GryphusError ? thrown : unplaceable(to, thrown);
    }
  }

  /**
   * The file with everything that the job wrote to a stream up to its last checkpoint before this attempt, and the
   * attempt that saved it; `undefined` if there is none. `node`: of a parallel job, if not the first.
   */
  async earlier(
    id: JobId,
    attempt: number,
    stream: Stream,
    node?: number,
  ): Promise<{ readonly path: string; readonly attempt: number } | undefined> {
    const last = await this.#before(id, attempt);
    const path = last === undefined ? undefined : join(last, streamOf(stream, node));
    if (last === undefined || path === undefined || !(await there(path))) return undefined;
    return { path, attempt: Number(basename(last)) };
  }

  /** A file that joins the stream up to the last checkpoint and what this attempt wrote, which is at `path`. */
  async joined(id: JobId, attempt: number, stream: Stream, path: string, node?: number): Promise<string> {
    const earlier = await this.earlier(id, attempt, stream, node);
    if (earlier === undefined) return path;
    const whole = `${path}.whole`;
    await copyFile(earlier.path, whole);
    await appendFile(whole, await readFile(path).catch(() => Buffer.alloc(0)));
    return whole;
  }

  /** The jobs that have a checkpoint. */
  async jobs(): Promise<JobId[]> {
    const names = await readdir(this.#root).catch(() => []);
    return names.flatMap((name) => parseJobId(name) ?? []);
  }

  async remove(id: JobId): Promise<void> {
    if (existsSync(this.#of(id))) await rm(this.#of(id), { recursive: true, force: true });
  }

  #of(id: JobId): string {
    return join(this.#root, formatJobId(id));
  }

  async #attempts(id: JobId): Promise<readonly string[]> {
    // Every job asks, but most have no checkpoint.
    return existsSync(this.#of(id)) ? readdir(this.#of(id)).catch(() => []) : [];
  }

  /** The last complete checkpoint of an earlier attempt. */
  async #before(id: JobId, attempt: number): Promise<string | undefined> {
    const numbers = (await this.#attempts(id)).filter((name) => /^\d+$/.test(name)).map(Number);
    const last = Math.max(...numbers.filter((number) => number < attempt));
    return Number.isFinite(last) ? join(this.#of(id), String(last)) : undefined;
  }
}

function streamOf(stream: Stream, node: number | undefined): string {
  return node === undefined ? stream : `${stream}.${node}`;
}

async function readRemote(path: string): Promise<RemoteCheckpoint | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : REMOTE.parse(JSON.parse(text));
}

async function there(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
