import fs from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

const REAL = { ...fs };

/**
 * What a power failure leaves of a new directory: only what this process has flushed, file by file and directory by directory. A flush
 * of a whole file system is not possible while one of these exists.
 */
export class FlushedDisk {
  readonly root = fs.mkdtempSync(join(tmpdir(), 'gryphus flushed '));
  /** By inode: what was flushed of files, and of directories their names with inodes. */
  readonly #files = new Map<number, Buffer>();
  readonly #names = new Map<number, ReadonlyMap<string, number>>();
  /** How often each was flushed, by inode. */
  readonly flushes = new Map<number, number>();
  /** How long a flush by a FileHandle takes, which counts from its beginning. */
  slow: Promise<void> = Promise.resolve();
  readonly #path = process.env['PATH'];
  readonly #handles: Handles;
  readonly #before: Pick<Handles, 'sync' | 'datasync'>;

  private constructor(handles: Handles) {
    this.#handles = handles;
    this.#before = { sync: handles.sync, datasync: handles.datasync };
    const note = (fd: number) => this.#note(fd);
    const slow = () => this.slow;
    fs.fsyncSync = fs.fdatasyncSync = note;
    const later = (fd: number, done: fs.NoParamCallback) => {
      note(fd);
      setImmediate(done, null);
    };
    fs.fsync = Object.assign(later, { __promisify__: fs.fsync.__promisify__ });
    fs.fdatasync = Object.assign(later, { __promisify__: fs.fdatasync.__promisify__ });
    syncBuiltinESMExports();
    handles.sync = handles.datasync = async function (this: { readonly fd: number }) {
      note(this.fd);
      await slow();
    };
    const programs = join(this.root, '.programs');
    fs.mkdirSync(programs);
    fs.writeFileSync(join(programs, 'sync'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    process.env['PATH'] = [programs, this.#path].join(delimiter);
  }

  static async begin(): Promise<FlushedDisk> {
    const file = await open('/dev/null');
    const handles = Object.getPrototypeOf(file) as Handles;
    await file.close();
    return new FlushedDisk(handles);
  }

  end(): void {
    const { fsync, fdatasync, fsyncSync, fdatasyncSync } = REAL;
    Object.assign(fs, { fsync, fdatasync, fsyncSync, fdatasyncSync });
    syncBuiltinESMExports();
    Object.assign(this.#handles, this.#before);
    process.env['PATH'] = this.#path;
    fs.rmSync(this.root, { recursive: true, force: true });
  }

  path(...names: readonly string[]): string {
    return join(this.root, ...names);
  }

  /** The content of the file, as a power failure now would leave it; `undefined`: it is gone. `below`: a directory that is left. */
  left(path: string, below = this.root): Buffer | undefined {
    let inode = fs.statSync(below).ino;
    for (const name of path.slice(below.length + 1).split('/')) {
      const found = this.#names.get(inode)?.get(name);
      if (found === undefined) return undefined;
      inode = found;
    }
    return this.#files.get(inode) ?? Buffer.alloc(0);
  }

  #note(fd: number): void {
    const found = fs.fstatSync(fd);
    this.flushes.set(found.ino, (this.flushes.get(found.ino) ?? 0) + 1);
    if (!found.isDirectory()) {
      this.#files.set(found.ino, fs.readFileSync(`/proc/self/fd/${fd}`));
      return;
    }
    const path = fs.readlinkSync(`/proc/self/fd/${fd}`);
    const names = fs.readdirSync(path).flatMap((name) => {
      const seen = fs.lstatSync(join(path, name), { throwIfNoEntry: false });
      return seen ? [[name, seen.ino] as const] : [];
    });
    this.#names.set(found.ino, new Map(names));
  }
}

interface Handles {
  sync: (this: { readonly fd: number }) => Promise<void>;
  datasync: (this: { readonly fd: number }) => Promise<void>;
}
