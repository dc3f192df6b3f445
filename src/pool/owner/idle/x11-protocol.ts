/*
 * The three requests of the X protocol that tell how long nobody has touched keyboard or mouse (X11 protocol, section 8
 * and 9; MIT-SCREEN-SAVER extension, version 1.1). Little-endian, which every server accepts.
 */
const EXTENSION = 'MIT-SCREEN-SAVER';
/** Errors, events and the replies to our requests have this length in bytes. */
export const MESSAGE = 32;

const padded = (length: number): number => (length + 3) & ~3;

export function setupRequest(name: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + padded(name.length) + padded(data.length));
  bytes.writeUInt8(0x6c, 0);
  bytes.writeUInt16LE(11, 2);
  bytes.writeUInt16LE(name.length, 6);
  bytes.writeUInt16LE(data.length, 8);
  bytes.write(name, 12, 'latin1');
  data.copy(bytes, 12 + padded(name.length));
  return bytes;
}

/** The length of the server's answer to the setup; `undefined` until its head is there. */
export function setupLength(bytes: Buffer): number | undefined {
  return bytes.length < 8 ? undefined : 8 + 4 * bytes.readUInt16LE(6);
}

/** The root window of the first screen, or why the server refuses. */
export function setupAnswer(bytes: Buffer): { readonly root: number } | { readonly refused: string } {
  if (bytes.readUInt8(0) !== 1) {
    const length = bytes.readUInt8(0) === 0 ? bytes.readUInt8(1) : bytes.length - 8;
    return {
      refused: bytes
        .subarray(8, 8 + length)
        .toString('latin1')
        .trim(),
    };
  }
  const vendor = bytes.readUInt16LE(24);
  const formats = bytes.readUInt8(29);
  const screen = 40 + padded(vendor) + 8 * formats;
  if (screen + 4 > bytes.length) return { refused: 'it has no screen' };
  return { root: bytes.readUInt32LE(screen) };
}

export function extensionRequest(): Buffer {
  const bytes = Buffer.alloc(8 + padded(EXTENSION.length));
  bytes.writeUInt8(98, 0);
  bytes.writeUInt16LE(bytes.length / 4, 2);
  bytes.writeUInt16LE(EXTENSION.length, 4);
  bytes.write(EXTENSION, 8, 'latin1');
  return bytes;
}

/** The extension's opcode; `undefined` if the server has none. */
export function extensionAnswer(bytes: Buffer): number | undefined {
  return bytes.readUInt8(8) === 1 ? bytes.readUInt8(9) : undefined;
}

export function idleRequest(opcode: number, root: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt8(opcode, 0);
  bytes.writeUInt8(1, 1);
  bytes.writeUInt16LE(2, 2);
  bytes.writeUInt32LE(root, 4);
  return bytes;
}

/** Milliseconds since the last input. */
export function idleAnswer(bytes: Buffer): number {
  return bytes.readUInt32LE(16);
}
