import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { appendOnce, missing, sizeOf } from '../../../src/scheduler/user-logs/append-once.ts';

const dir = mkdtempSync('/tmp/gq-');
afterAll(() => rmSync(dir, { recursive: true, force: true }));
let number = 0;
const fresh = (content?: string): string => {
  const path = join(dir, `log ${number++}`);
  if (content !== undefined) writeFileSync(path, content);
  return path;
};
const text = fc.string({ unit: fc.constantFrom('a', 'b', 'ü', '\n'), minLength: 1, maxLength: 40 });

describe('a piece of a user log', () => {
  it('is there once, however much of it an earlier call has written', async () => {
    await fc.assert(
      fc.asyncProperty(text, text, fc.nat(40), async (old, piece, cut) => {
        const path = fresh(old);
        const size = await sizeOf(path);
        const begun = Buffer.from(piece).subarray(0, cut);
        writeFileSync(path, Buffer.concat([Buffer.from(old), begun]));
        for (let times = 0; times < 2; times++) await appendOnce({ path, text: piece, size });
        expect(readFileSync(path, 'utf8')).toBe(old + piece);
      }),
    );
  });

  it('leaves what another program wrote to the same log meanwhile', async () => {
    const piece = '005 (1.0.0)\n...\n';
    for (const [before, after] of [
      ['', '001 (9.0.0)\n...\n'],
      ['001 (9.0.0)\n...\n', ''],
      ['001 (9.0.0)\n...\n', '005 (9.0.0)\n...\n'],
    ] as const) {
      const path = fresh(`000\n...\n${before}${piece}${after}`);
      await appendOnce({ path, text: piece, size: 8 });
      expect(readFileSync(path, 'utf8')).toBe(`000\n...\n${before}${piece}${after}`);
    }
    const path = fresh('000\n...\n001 (9.0.0)\n...\n');
    await appendOnce({ path, text: piece, size: 8 });
    expect(readFileSync(path, 'utf8')).toBe(`000\n...\n001 (9.0.0)\n...\n${piece}`);
    expect(missing(Buffer.from('ab'), Buffer.from('ac'))).toEqual(Buffer.from('ab'));
  });

  it('begins a log that is not there, or was taken away since', async () => {
    const path = fresh();
    expect(await sizeOf(path)).toBe(0);
    await appendOnce({ path, text: 'first\n', size: 0 });
    await appendOnce({ path, text: 'second\n', size: 6 });
    rmSync(path);
    await appendOnce({ path, text: 'third\n', size: 13 });
    expect(readFileSync(path, 'utf8')).toBe('third\n');
  });

  it.each([
    ['FIFO', (path: string) => execFileSync('mkfifo', [path])],
    ['directory', (path: string) => mkdirSync(path)],
  ])('is not written to a %s, and does not wait there', async (_, make) => {
    const path = fresh();
    make(path);
    await expect(sizeOf(path)).rejects.toThrow(/is not a regular file/);
    await expect(appendOnce({ path, text: 'x', size: 0 })).rejects.toThrow(/ENXIO|EISDIR/);
  });

  it('is not written to a device', async () => {
    await expect(sizeOf('/dev/full')).rejects.toThrow('/dev/full is not a regular file');
    await expect(appendOnce({ path: '/dev/full', text: 'x', size: 0 })).rejects.toThrow(/is not a regular file/);
  });
});
