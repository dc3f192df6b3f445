const HEADERS = 64 + 2 * 56;
const BASE = 0x400000n;

/**
 * An ELF executable that contains only these instructions and starts at the first. `machine`: the ELF number of the
 * architecture.
 */
export function tinyElf(machine: number, code: Uint8Array): Buffer {
  const head = Buffer.alloc(HEADERS);
  const size = BigInt(HEADERS + code.length);
  head.write('\x7fELF\x02\x01\x01', 'latin1');
  head.writeUInt16LE(2, 16); // executable
  head.writeUInt16LE(machine, 18);
  head.writeUInt32LE(1, 20);
  head.writeBigUInt64LE(BASE + BigInt(HEADERS), 24); // entry
  head.writeBigUInt64LE(64n, 32); // program headers
  head.writeUInt16LE(64, 52);
  head.writeUInt16LE(56, 54);
  head.writeUInt16LE(2, 56);
  head.writeUInt32LE(1, 64); // load
  head.writeUInt32LE(5, 68); // read, execute
  head.writeBigUInt64LE(BASE, 80);
  head.writeBigUInt64LE(BASE, 88);
  head.writeBigUInt64LE(size, 96);
  head.writeBigUInt64LE(size, 104);
  head.writeBigUInt64LE(0x1000n, 112);
  head.writeUInt32LE(0x6474e551, 120); // the stack, not executable
  head.writeUInt32LE(6, 124); // read, write
  head.writeBigUInt64LE(16n, 168);
  return Buffer.concat([head, code]);
}
