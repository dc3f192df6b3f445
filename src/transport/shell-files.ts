import { asError, GryphusError } from '../errors.ts';
import { shellQuote } from '../util/shell-quote.ts';
import type { Channel } from './contract.ts';
import type { RemoteShell } from './remote-shell.ts';
import { type FileSide, type FileStat, fileError } from './transfer.ts';

/** The far side's files accessed by POSIX shell commands, for a site without sftp and for the system's ssh. */
export class ShellFiles implements FileSide {
  readonly label: string;
  readonly #shell: Pick<RemoteShell, 'run' | 'open'>;

  constructor(label: string, shell: Pick<RemoteShell, 'run' | 'open'>) {
    this.label = label;
    this.#shell = shell;
  }

  async stat(path: string): Promise<FileStat | undefined> {
    const file = word(path);
    // First GNU and busybox, then the BSDs.
    const line = await this.#run(
      'read',
      path,
      `[ -e ${file} ] || { echo none; exit 0; }; [ -f ${file} ] && t=file || t=other; ` +
        `set -- $(stat -L -c '%s %Y' ${file} 2>/dev/null || stat -L -f '%z %m' ${file}); echo "$t $1 $2"`,
    );
    const [type, size, changed] = line.trim().split(' ');
    if (type === 'none') return undefined;
    if (changed === undefined) throw fileError(this.label, 'read', path, new Error(`stat said "${line.trim()}"`));
    return { size: Number(size), changed, isFile: type === 'file' };
  }

  async prefixHash(path: string, length: number): Promise<string | undefined> {
    const result = await this.#shell.run(
      `head -c ${length} ${word(path)} | { openssl dgst -sha256 -r || sha256sum || shasum -a 256; } 2>/dev/null`,
    );
    return /^[0-9a-f]{64}/.exec(result.stdout.toString())?.[0];
  }

  async *read(path: string, from: number): AsyncGenerator<Buffer> {
    const channel = await this.#shell.open(from === 0 ? `cat ${word(path)}` : `tail -c +${from + 1} ${word(path)}`);
    try {
      channel.stdin.end();
      const complaint = gather(channel);
      for await (const chunk of channel.stdout) yield chunk as Buffer;
      await this.#finish(channel, 'read', path, await complaint);
    } finally {
      channel.kill();
    }
  }

  async write(path: string, at: number, bytes: AsyncIterable<Buffer>, total: number): Promise<void> {
    const file = word(path);
    // What a lost connection left may write for a moment yet: the same bytes in the same place, or into a file that is gone.
    const script =
      at === 0
        ? `rm -f ${file}; cat > ${file}`
        : `{ dd bs=1 seek=${at} count=0 conv=notrunc </dev/null && cat; } 1<> ${file}`;
    // To the far side, a lost connection looks like the end of the file; the size at the end tells them apart.
    const channel = await this.#shell.open(`umask 077; ${script}`);
    try {
      channel.stdout.resume();
      const complaint = gather(channel);
      // Subscribed before anything is written, so that an early end is noticed.
      const ended = channel.closed.then(() => 'ended' as const);
      for await (const chunk of bytes) {
        const written = new Promise<unknown>(
          (done) => void channel.stdin.write(chunk, (error) => done(error ?? undefined)),
        );
        if ((await Promise.race([written, ended])) !== undefined) break;
      }
      channel.stdin.end();
      await this.#finish(channel, 'write', path, await complaint);
    } finally {
      channel.kill();
    }
    const size = (await this.stat(path))?.size;
    if (size !== total)
      throw new GryphusError('protocol-error', `${path} on ${this.label} has ${size} of ${total} bytes.`);
  }

  async place(part: string, path: string, mode: number): Promise<void> {
    const target = word(path);
    // mv into a directory would hide the file in it.
    await this.#run(
      'write',
      path,
      `[ ! -d ${target} ] || { echo 'Is a directory' >&2; exit 1; }; ` +
        `chmod ${mode.toString(8)} ${word(part)} && mv -f ${word(part)} ${target}`,
    );
  }

  async remove(path: string): Promise<void> {
    await this.#run('write', path, `rm -f ${word(path)}`);
  }

  async #run(doing: 'read' | 'write', path: string, script: string): Promise<string> {
    const result = await this.#shell.run(script);
    if (result.code !== 0) throw fileError(this.label, doing, path, new Error(lastLine(result.stderr)));
    return result.stdout.toString();
  }

  async #finish(channel: Channel, doing: 'read' | 'write', path: string, complaint: Buffer): Promise<void> {
    const end = await channel.closed;
    if (end.kind === 'lost') {
      throw new GryphusError('site-unreachable', `The connection to ${this.label} was lost at ${path}.`, {
        cause: end.reason,
      });
    }
    if (end.kind === 'signaled' || end.code !== 0)
      throw fileError(this.label, doing, path, new Error(lastLine(complaint)));
  }
}

async function gather(channel: Channel): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of channel.stderr) chunks.push(chunk as Buffer);
  } catch (thrown) {
    void asError(thrown);
  }
  return Buffer.concat(chunks);
}

function lastLine(stderr: Buffer): string {
  return stderr.toString().trim().split('\n').at(-1) || 'it failed without a message';
}

/** A file name as one shell word that no program mistakes for an option. */
function word(path: string): string {
  return shellQuote(path.startsWith('/') ? path : `./${path}`);
}
