import { existsSync } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Checkpoints } from './checkpoints.ts';
import { GrownFiles } from './grown-files.ts';
import { unplaceable } from './place.ts';
import { GryphusError } from '../errors.ts';
import { type AttemptKey, isAttemptKey } from '../job/ids.ts';

/** The names of a job's streams in its attempt's directory at home. */
export const STREAM_FILES = { stdout: '_condor_stdout', stderr: '_condor_stderr' } as const;
export type StreamName = keyof typeof STREAM_FILES;

/**
 * What has come home of each attempt so far: `<spool>/<key>/`, private. Streams are written at their byte offsets, so a
 * chunk that is repeated after a crash of either side changes nothing.
 */
export class AttemptSpool {
  readonly #root: string;
  /** The checkpoints of jobs that checkpoint themselves. */
  readonly checkpoints: Checkpoints;
  /** What has come of files that grow (`stream_results`). */
  readonly grown: GrownFiles;

  constructor(root: string) {
    this.#root = root;
    this.checkpoints = new Checkpoints(join(root, '.checkpoints'));
    this.grown = new GrownFiles(join(root, '.growing'));
  }

  /** 'protocol-error' for an invalid key, which may have come from a site and would become a path. */
  directory(key: AttemptKey): string {
    if (!isAttemptKey(key))
      throw new GryphusError('protocol-error', `${JSON.stringify(key)} is not the key of an attempt.`);
    return join(this.#root, key);
  }

  streamPath(key: AttemptKey, stream: StreamName): string {
    return join(this.directory(key), STREAM_FILES[stream]);
  }

  async prepare(key: AttemptKey): Promise<string> {
    const directory = this.directory(key);
    await mkdir(directory, { recursive: true, mode: 0o700 }).catch((thrown: unknown) => {
      throw unplaceable(directory, thrown);
    });
    return directory;
  }

  /** How many bytes of the stream are here, which is where to continue. */
  async length(key: AttemptKey, stream: StreamName): Promise<number> {
    const file = await open(this.streamPath(key, stream), 'r').catch(() => undefined);
    if (!file) return 0;
    try {
      return (await file.stat()).size;
    } finally {
      await file.close();
    }
  }

  /**
   * Returns the stream's new length here. A chunk that would leave a gap is refused: the caller asks again from the
   * length. Rejects with 'disk-full' or 'output-unwritable', possibly after writing some of the bytes.
   */
  async write(key: AttemptKey, stream: StreamName, offset: number, data: Uint8Array): Promise<number> {
    await this.prepare(key);
    const path = this.streamPath(key, stream);
    const file = await open(path, 'a+', 0o600).catch((thrown: unknown) => {
      throw unplaceable(path, thrown);
    });
    try {
      const here = (await file.stat()).size;
      if (offset > here) return here;
      const fresh = data.subarray(here - offset);
      if (fresh.length > 0) await file.appendFile(fresh);
      return here + fresh.length;
    } catch (thrown) {
      throw unplaceable(path, thrown);
    } finally {
      await file.close();
    }
  }

  /** Where what an attempt is about to change at home is written down (`want_io_proxy`, `want_remote_io`). */
  requestJournal(key: AttemptKey): string {
    return join(dirname(this.directory(key)), '.asked', key);
  }

  async remove(key: AttemptKey): Promise<void> {
    const directory = this.directory(key);
    const journal = this.requestJournal(key);
    if (existsSync(journal)) await rm(journal, { recursive: true, force: true });
    await this.grown.remove(key);
    // Most short jobs leave nothing here, and checking costs a tenth of a removal.
    if (existsSync(directory)) await rm(directory, { recursive: true, force: true });
  }
}
