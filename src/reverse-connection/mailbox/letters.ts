import { Duplex } from 'node:stream';

/** A numbered piece of a link's bytes; an empty one ends the stream. */
export interface Letter {
  readonly seq: number;
  readonly bytes: Buffer;
}

/** Larger letters would delay small ones; smaller ones would cost more files. */
const LETTER_BYTES = 256 * 1024;
/** How many bytes may be in the box before the writer has to wait. */
const WINDOW_BYTES = 4 * 1024 * 1024;

/**
 * One end of a link by letters. Written bytes become numbered letters, which do not change until they are in the box.
 * Letters that arrive are read in order, each only once, however often they are delivered. It uses no files.
 */
export class LetterLink extends Duplex {
  /** Called when there is something to post. */
  readonly #onWork: () => void;
  #loose: Buffer[] = [];
  #letters: Letter[] = [];
  #nextOut = 0;
  #nextIn = 0;
  #held = 0;
  #waiting: (() => void) | undefined;
  #early = new Map<number, Buffer>();
  #full = false;

  constructor(onWork: () => void) {
    super({ allowHalfOpen: false });
    this.#onWork = onWork;
  }

  /** The number of the next expected letter; all letters before it have been read. */
  get expected(): number {
    return this.#nextIn;
  }

  /** The reader is behind, so letters should stay where they are. */
  get full(): boolean {
    return this.#full;
  }

  /** Letters not known to be in the box, oldest first; returns the same ones until `posted` is called. */
  outgoing(): readonly Letter[] {
    while (this.#loose.length > 0) {
      const taken: Buffer[] = [];
      for (let bytes = 0; bytes < LETTER_BYTES && this.#loose.length > 0; ) {
        const piece = this.#loose.shift() ?? Buffer.alloc(0);
        const bytesLeft = LETTER_BYTES - bytes;
        if (piece.length > bytesLeft) this.#loose.unshift(piece.subarray(bytesLeft));
        taken.push(piece.subarray(0, bytesLeft));
        bytes += Math.min(piece.length, bytesLeft);
      }
      this.#letters.push({ seq: this.#nextOut++, bytes: Buffer.concat(taken) });
    }
    if (this.writableFinished && !this.#said) {
      this.#said = true;
      this.#letters.push({ seq: this.#nextOut++, bytes: Buffer.alloc(0) });
    }
    return this.#letters;
  }
  #said = false;

  /** Everything was sent and is in the box. */
  get done(): boolean {
    return this.#said && this.#letters.length === 0;
  }

  /** The letters up to and including `seq` are in the box. */
  posted(seq: number): void {
    for (let first = this.#letters[0]; first !== undefined && first.seq <= seq; first = this.#letters[0]) {
      this.#held -= first.bytes.length;
      this.#letters.shift();
    }
    const resume = this.#waiting;
    if (resume === undefined || this.#held >= WINDOW_BYTES) return;
    this.#waiting = undefined;
    resume();
  }

  /** A letter was found in the box. */
  arrived({ seq, bytes }: Letter): void {
    if (seq < this.#nextIn || this.destroyed) return;
    this.#early.set(seq, bytes);
    for (let next = this.#early.get(this.#nextIn); next !== undefined; next = this.#early.get(this.#nextIn)) {
      this.#early.delete(this.#nextIn);
      this.#nextIn++;
      this.#full = !this.push(next.length === 0 ? null : next);
    }
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#loose.push(chunk);
    this.#held += chunk.length;
    if (this.#held < WINDOW_BYTES) done();
    else this.#waiting = done;
    this.#onWork();
  }

  override _final(done: () => void): void {
    done();
    setImmediate(this.#onWork);
  }

  override _read(): void {
    if (!this.#full) return;
    this.#full = false;
    this.#onWork();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#early.clear();
    done(error);
    this.#onWork();
  }
}
