/** Reads SSH's binary data types (RFC 4251, section 5) from a buffer; throws a RangeError if it ends too early. */
export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get offset(): number {
    return this.#at;
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  uint32(): number {
    const value = this.#bytes.readUInt32BE(this.#at);
    this.#at += 4;
    return value;
  }

  uint64(): bigint {
    const value = this.#bytes.readBigUInt64BE(this.#at);
    this.#at += 8;
    return value;
  }

  string(): Buffer {
    const length = this.uint32();
    if (this.#at + length > this.#bytes.length) throw new RangeError('An SSH string is cut short.');
    const value = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return value;
  }

  text(): string {
    return this.string().toString('utf8');
  }

  /** A positive multiple-precision integer without its leading zeros. */
  integer(): Buffer {
    const value = this.string();
    let zeros = 0;
    while (zeros < value.length && value[zeros] === 0) zeros++;
    return value.subarray(zeros);
  }
}

/** A string of RFC 4251: length, then bytes. */
export function wireString(value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
