import type { SFTPWrapper, Stats } from 'ssh2';
import { asError, GryphusError } from '../errors.ts';
import { Flight } from '../util/flight.ts';
import { shellQuote } from '../util/shell-quote.ts';
import type { RemoteShell } from './remote-shell.ts';
import type { ShellFiles } from './shell-files.ts';
import { type FileSide, type FileStat, fileError } from './transfer.ts';

/** Bytes per request: the most that OpenSSH accepts, including its header. */
const CHUNK = 255 * 1024;

/** Requests under way at most: twice what the 2 MB of a channel's window hold, as the rest would only wait in memory. */
const MOST = 16;

const NO_SUCH_FILE = 2;
const FAILURE = 4;

/** The far side's files over one SFTP session, with many concurrent requests (draft-ietf-secsh-filexfer-02). */
export class SftpFiles implements FileSide {
  readonly label: string;
  readonly #sftp: SFTPWrapper;
  readonly #shell: RemoteShell;
  readonly #byShell: ShellFiles;
  /** Requests without an answer. */
  readonly #waiting = new Set<(reason: Error) => void>();
  #ended = false;

  constructor(sftp: SFTPWrapper, shell: RemoteShell, byShell: ShellFiles) {
    this.label = byShell.label;
    this.#sftp = sftp;
    this.#shell = shell;
    this.#byShell = byShell;
    for (const event of ['end', 'close']) sftp.once(event, () => this.#end());
  }

  async stat(path: string): Promise<FileStat | undefined> {
    try {
      const found = await this.#call<Stats>((done) => this.#sftp.stat(path, done));
      return { size: found.size, changed: String(found.mtime), isFile: found.isFile() };
    } catch (thrown) {
      if (statusOf(thrown) === NO_SUCH_FILE) return undefined;
      throw await this.#fault('read', path, thrown);
    }
  }

  prefixHash(path: string, length: number): Promise<string | undefined> {
    return this.#byShell.prefixHash(path, length);
  }

  async *read(path: string, from: number): AsyncGenerator<Buffer> {
    const handle = await this.#open('read', path, 'r');
    const under: Promise<Buffer>[] = [];
    const flight = new Flight(MOST);
    // Memory that outlives a collection of young objects goes only with a collection of all.
    const free: Buffer[] = [];
    try {
      let next = from;
      for (;;) {
        while (under.length < flight.most) {
          const block = timed(flight, this.#readBlock(handle, next, free.pop() ?? Buffer.allocUnsafeSlow(CHUNK)));
          // The loop below handles the first failure; later ones only repeat it.
          block.catch(() => undefined);
          under.push(block);
          next += CHUNK;
        }
        const bytes = await under.shift();
        if (bytes === undefined || bytes.length === 0) break;
        yield bytes;
        if (bytes.length < CHUNK) break;
        free.push(bytes);
      }
    } catch (thrown) {
      throw await this.#fault('read', path, thrown);
    } finally {
      this.#close(handle);
    }
  }

  /** A whole block, or less only at the end of the file; a server may return less than was asked for. */
  async #readBlock(handle: Buffer, position: number, block: Buffer): Promise<Buffer> {
    let filled = 0;
    while (filled < CHUNK) {
      const got = await this.#call<number>((done) =>
        this.#sftp.read(handle, block, filled, CHUNK - filled, position + filled, done),
      );
      if (got === 0) break;
      filled += got;
    }
    return block.subarray(0, filled);
  }

  async write(path: string, at: number, bytes: AsyncIterable<Buffer>): Promise<void> {
    const handle = await this.#open('write', path, at === 0 ? 'w' : 'r+');
    const under = new Set<Promise<void>>();
    const free: Buffer[] = [];
    const flight = new Flight(MOST);
    let failure: Error | undefined;
    try {
      let offset = at;
      for await (const chunk of bytes) {
        for (let start = 0; start < chunk.length; start += CHUNK) {
          // To a server that takes less in one request, ssh2 sends the rest of a piece later.
          const block = free.pop() ?? Buffer.allocUnsafeSlow(CHUNK);
          const piece = block.subarray(0, chunk.copy(block, 0, start));
          const position = offset + start;
          const write = this.#call<void>((done) => this.#sftp.write(handle, piece, 0, piece.length, position, done));
          const written: Promise<void> = timed(flight, write).then(
            () => {
              under.delete(written);
              free.push(block);
            },
            (thrown) => {
              under.delete(written);
              failure ??= asError(thrown);
            },
          );
          under.add(written);
          while (under.size >= flight.most) await Promise.race(under);
          if (failure !== undefined) throw failure;
        }
        offset += chunk.length;
      }
      await Promise.all(under);
      if (failure !== undefined) throw failure;
    } catch (thrown) {
      throw await this.#fault('write', path, thrown);
    } finally {
      this.#close(handle);
    }
  }

  async place(part: string, path: string, mode: number): Promise<void> {
    try {
      await this.#call<void>((done) => this.#sftp.chmod(part, mode, done));
      await this.#call<void>((done) => this.#sftp.ext_openssh_rename(part, path, done));
    } catch (thrown) {
      if (!(thrown instanceof GryphusError) && /does not support|not support/i.test(asError(thrown).message)) {
        return await this.#byShell.place(part, path, mode);
      }
      throw await this.#fault('write', path, thrown);
    }
  }

  async remove(path: string): Promise<void> {
    await this.#call<void>((done) => this.#sftp.unlink(path, done));
  }

  async #open(doing: 'read' | 'write', path: string, flags: 'r' | 'w' | 'r+'): Promise<Buffer> {
    try {
      return await this.#call<Buffer>((done) => this.#sftp.open(path, flags, { mode: 0o600 }, done));
    } catch (thrown) {
      throw await this.#fault(doing, path, thrown);
    }
  }

  #close(handle: Buffer): void {
    try {
      this.#sftp.close(handle, () => undefined);
    } catch {
      // The session ended, and its handles with it.
    }
  }

  /**
   * One request. ssh2 fails those that are open when the session ends, but drops one that comes between the end and the
   * closing of the channel, and never calls back.
   */
  #call<T>(request: (done: (error: Error | null | undefined, value?: T) => void) => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#ended) return reject(new Error('The SFTP session has ended.'));
      this.#waiting.add(reject);
      request((error, value) => {
        this.#waiting.delete(reject);
        if (error) reject(error);
        else resolve(value as T);
      });
    });
  }

  #end(): void {
    this.#ended = true;
    for (const reject of this.#waiting) reject(new Error('The SFTP session ended.'));
    this.#waiting.clear();
  }

  /** SFTP reports a full disk only as "Failure"; the shell names the cause. */
  async #fault(doing: 'read' | 'write', path: string, thrown: unknown): Promise<GryphusError> {
    if (thrown instanceof GryphusError) return thrown;
    const status = statusOf(thrown);
    if (status === undefined) {
      return new GryphusError('site-unreachable', `The connection to ${this.label} was lost at ${path}.`, {
        cause: thrown,
      });
    }
    if (doing === 'write' && status === FAILURE) {
      const slash = path.lastIndexOf('/');
      const dir = slash === -1 ? '.' : path.slice(0, slash + 1);
      const probe = shellQuote(`${dir}/.gryphus-probe`);
      const tried = await this.#shell
        .run(`head -c 1048576 /dev/zero > ${probe}; s=$?; rm -f ${probe}; exit $s`)
        .catch(() => undefined);
      const said = tried?.stderr.toString().trim();
      if (said) return fileError(this.label, doing, path, new Error(said));
    }
    return fileError(this.label, doing, path, thrown);
  }
}

async function timed<T>(flight: Flight, request: Promise<T>): Promise<T> {
  const begun = performance.now();
  const answer = await request;
  flight.answered(performance.now() - begun);
  return answer;
}

/** The SFTP status of a failed request; undefined if the session itself failed. */
function statusOf(thrown: unknown): number | undefined {
  const { code } = thrown as { code?: unknown };
  return typeof code === 'number' ? code : undefined;
}
