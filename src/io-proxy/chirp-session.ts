import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { AS_THEY_ARE, CHIRP_ERROR, CHIRP_PIECE, type HomeAnswer, type HomeOp } from '../site/chirp.ts';
import type { Incoming } from './incoming.ts';
import { type ChirpLine, readChirpLine } from './chirp-line.ts';
import { type OpenFile, OpenFiles } from './open-files.ts';

/** What a connection of a job needs. */
export interface SessionOptions {
  readonly socket: Socket;
  readonly incoming: Incoming;
  /** Asks the job's home, and waits for it while it is away. */
  readonly ask: (
    op: HomeOp,
    words: readonly string[],
    numbers: readonly number[],
    bytes?: Uint8Array,
  ) => Promise<HomeAnswer>;
  /** Goes on as a connection of gryphus-remote-io under this name; `undefined` if the job did not ask for that. */
  readonly remote?: ((name: string) => Promise<void>) | undefined;
  readonly delayed: {
    get(name: string): string | undefined;
    /** A number of `CHIRP_ERROR`, or 0. */
    set(name: string, text: string): number;
  };
}

const VERSION = 2;
/** Who asks is known by the cookie; condor_starter says this. */
const NAME = Buffer.from('CONDOR');
/** Requests about an open file that home answers for its path. */
const OF_OPEN: Readonly<Partial<Record<ChirpLine['verb'], HomeOp>>> = {
  fstat: 'stat',
  fstatfs: 'statfs',
  fchown: 'chown',
  fchmod: 'chmod',
  ftruncate: 'truncate',
  fsync: 'fsync',
};
/** No file is so long, and a few pieces more are still exact; bytes. */
const FURTHEST = 2 ** 52;
/** Where the size stands in the state of a file. */
const SIZE_FIELD = 7;

/** One connection of a job that has shown its cookie: reads its requests and answers them, one after another. */
export class ChirpSession {
  readonly #options: SessionOptions;
  readonly #files = new OpenFiles();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Until the job ends the connection, and all that it sent is done. */
  async run(): Promise<void> {
    const { incoming } = this.#options;
    for (;;) {
      const line = await incoming.line();
      if (line === undefined) return;
      if (line === 'too long') return this.#say({ result: CHIRP_ERROR.tooBig });
      const request = readChirpLine(line);
      const { remote } = this.#options;
      if (request?.verb === 'remote_io' && remote) {
        await this.#say({ result: 0 });
        return remote(request.words[0] ?? '');
      }
      await (request ? this.#answer(request) : this.#say({ result: CHIRP_ERROR.invalidRequest }));
    }
  }

  async #answer(request: ChirpLine): Promise<void> {
    const { verb, words, numbers } = request;
    const { ask, delayed } = this.#options;
    const [first = '', second = ''] = words;
    const [number = 0] = numbers;
    const asItIs = AS_THEY_ARE.find((op) => op === verb);
    if (asItIs) return this.#say(await ask(asItIs, words, numbers));
    const name = () => (number < NAME.length ? { result: CHIRP_ERROR.noSpace } : { result: NAME.length, bytes: NAME });
    const answers: Partial<Record<ChirpLine['verb'], () => HomeAnswer | Promise<HomeAnswer>>> = {
      open: () => this.#open(first, second, number),
      close: () => ({ result: this.#files.close(number) ? 0 : CHIRP_ERROR.badFd }),
      lookup: () => text(first),
      get_job_attr_delayed: () => {
        const value = delayed.get(first);
        return value === undefined ? { result: CHIRP_ERROR.doesNotExist } : text(value);
      },
      set_job_attr_delayed: () => ({ result: delayed.set(first, second) }),
      whoami: name,
      whoareyou: name,
      version: () => ({ result: VERSION }),
    };
    if (verb === 'getfile') return this.#getFile(first);
    if (verb === 'putfile') return this.#putFile(first, numbers);
    return this.#say(await (answers[verb]?.() ?? this.#onOpen(request)));
  }

  async #open(path: string, flags: string, mode: number): Promise<HomeAnswer> {
    const { result, bytes } = await this.#options.ask('open', [path, flags], [mode]);
    if (result < 0) return { result };
    const fd = this.#files.add({ path, append: flags.includes('a'), position: 0 });
    return fd === undefined ? { result: CHIRP_ERROR.tooManyOpen } : { result: fd, ...(bytes && { bytes }) };
  }

  /** Requests about an open file. */
  async #onOpen({ verb, numbers }: ChirpLine): Promise<HomeAnswer> {
    const [fd, length = 0, ...more] = numbers;
    const file = this.#files.get(fd);
    const { ask } = this.#options;
    // The bytes of a write follow it in any case.
    if (verb === 'write') return this.#take(file, length, undefined, []);
    if (verb === 'pwrite' || verb === 'swrite') return this.#take(file, length, more[0], more.slice(1));
    if (!file) return BAD_FD;
    if (verb === 'lseek') return this.#seek(file, length, more[0]);
    if (verb === 'pread' || verb === 'sread') return ask('read', [file.path], [length, ...more]);
    if (verb === 'read') {
      const answer = await ask('read', [file.path], [length, file.position]);
      file.position += Math.max(0, answer.result);
      return answer;
    }
    const op = OF_OPEN[verb];
    return op === undefined ? { result: CHIRP_ERROR.invalidRequest } : ask(op, [file.path], numbers.slice(1));
  }

  async #seek(file: OpenFile, offset: number, whence = 0): Promise<HomeAnswer> {
    if (whence < 0 || whence > 2) return { result: CHIRP_ERROR.invalidRequest };
    let base = whence === 1 ? file.position : 0;
    if (whence === 2) {
      const size = await this.#sizeOf(file.path);
      if (size < 0) return { result: size };
      base = size;
    }
    if (base + offset < 0 || base + offset > FURTHEST) return { result: CHIRP_ERROR.invalidRequest };
    file.position = base + offset;
    return { result: file.position };
  }

  async #sizeOf(path: string): Promise<number> {
    const { result, bytes = EMPTY } = await this.#options.ask('stat', [path], []);
    return result < 0 ? result : Number(Buffer.from(bytes).toString().split(' ')[SIZE_FIELD]);
  }

  /** Bytes to write. They follow the request in any case, so they are read even if they are not wanted. */
  async #take(
    file: OpenFile | undefined,
    length: number,
    offset: number | undefined,
    strides: readonly number[],
  ): Promise<HomeAnswer> {
    if (length < 0) return { result: CHIRP_ERROR.invalidRequest };
    const { incoming, ask } = this.#options;
    let failed: number | undefined = file ? undefined : CHIRP_ERROR.badFd;
    let done = 0;
    // A write in strides is not divided: a piece could end within a stride.
    if (strides.length > 0 && length > CHIRP_PIECE) failed ??= CHIRP_ERROR.tooBig;
    while (done < length) {
      const bytes = await incoming.bytes(Math.min(length - done, CHIRP_PIECE));
      if (bytes.length === 0) return { result: CHIRP_ERROR.invalidRequest };
      if (file && failed === undefined) {
        const where = offset === undefined ? file.position : offset + done;
        const { result } = await (file.append
          ? ask('append', [file.path], [], bytes)
          : ask('write', [file.path], [where, ...strides], bytes));
        if (result < 0) failed = result;
        else if (offset === undefined) file.position += bytes.length;
      }
      done += bytes.length;
    }
    return { result: failed ?? length };
  }

  async #getFile(path: string): Promise<void> {
    const { ask } = this.#options;
    const size = await this.#sizeOf(path);
    if (size < 0) return this.#say({ result: size });
    let piece = await ask('read', [path], [CHIRP_PIECE, 0]);
    if (piece.result < 0) return this.#say({ result: piece.result });
    await this.#write(Buffer.from(`${size}\n`));
    for (let sent = 0; ; ) {
      const bytes = Buffer.from(piece.bytes ?? EMPTY).subarray(0, size - sent);
      await this.#write(bytes);
      sent += bytes.length;
      if (sent >= size) return;
      piece = await ask('read', [path], [CHIRP_PIECE, sent]);
      // It has become shorter, or is gone: the job must not take what follows for its content.
      if (piece.result <= 0) return void this.#options.socket.destroy();
    }
  }

  async #putFile(path: string, [mode = 0, length = 0]: readonly number[]): Promise<void> {
    const opened = await this.#options.ask('open', [path, 'wct'], [mode]);
    await this.#say({ result: opened.result });
    if (opened.result < 0 || length <= 0) return;
    await this.#say(await this.#take({ path, append: false, position: 0 }, length, 0, []));
  }

  #say({ result, bytes = EMPTY }: HomeAnswer): Promise<void> {
    return this.#write(Buffer.concat([Buffer.from(`${result}\n`), bytes]));
  }

  #write(bytes: Buffer): Promise<void> {
    return writeTo(this.#options.socket, bytes);
  }
}

/** Resolves when more may be written. */
/** Resolves when more can be written. */
export function writeTo(socket: Writable, ...pieces: readonly Uint8Array[]): Promise<void> {
  if (socket.destroyed || !socket.writable) return Promise.resolve();
  socket.cork();
  const more = pieces.map((bytes) => socket.write(bytes)).every(Boolean);
  socket.uncork();
  if (more) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      socket.off('drain', done);
      socket.off('close', done);
      resolve();
    };
    socket.on('drain', done);
    socket.on('close', done);
  });
}

const EMPTY = Buffer.alloc(0);
const BAD_FD: HomeAnswer = { result: CHIRP_ERROR.badFd };

function text(value: string): HomeAnswer {
  const bytes = Buffer.from(value);
  return { result: bytes.length, bytes };
}
