import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { readAnswer } from '../../src/jobmanager/answer.ts';
import { ByteReader } from '../../src/jobmanager/byte-reader.ts';
import { SmallFiles } from '../../src/jobmanager/small-files.ts';

const MB = 1 << 20;

/** Counts what is read of `pieces` that never end, so that the test shows where reading stopped. */
function endless(first: string, piece: string) {
  const large = Buffer.from(piece.repeat(Math.ceil((256 * 1024) / piece.length)));
  let read = 0;
  const stream = Readable.from(
    (function* () {
      yield Buffer.from(first);
      for (;;) {
        read += large.length;
        yield large;
      }
    })(),
  );
  return { reader: new ByteReader(stream), read: () => read };
}

it.each([
  ['a line', 'time ', 'x', 2],
  ['bytes of a stream', `data k.1.0.1 out 0 ${Number.MAX_SAFE_INTEGER}\n`, 'x', 1],
  ['lines', '', `job ${'x'.repeat(60)}\n`, 36],
  ['short lines', '', 'a\n', 2],
  ['names of files', '', 'small k/work/x\n', 12],
  ['one file', 'small k/work/x\nstream n 1\n', 'x', 2],
  ['lines before the end of another request', '', 'end 7 0\n', 1],
])(
  '%s without end is not read to the end',
  async (_, first, piece, most) => {
    const { reader, read } = endless(first, piece);
    const sink = new SmallFiles(async () => undefined);
    await expect(readAnswer(reader, 1, sink)).rejects.toMatchObject({
      name: expect.stringMatching(/TooLong|NotOurs/) as unknown,
    });
    expect(read()).toBeLessThan(most * MB);
  },
  30_000,
);

it('files are handed on one by one, and those of a stream that could not be read whole are named', async () => {
  const text =
    'small a\nsmall b\nstream N 2\nA\nN\nB\nN\nstreamed 0\nsmall c\nstream N 1\nC\nN\nstreamed 1\nbig d\nend 1 0\n';
  const saved: string[] = [];
  const sink = new SmallFiles(async (name, bytes) => void saved.push(`${name}=${bytes.toString()}`));
  // An earlier answer broke off after the first name.
  sink.line('small', 'broken');
  const { lines } = await readAnswer(new ByteReader(Readable.from([Buffer.from(text)])), 1, sink);
  expect(saved).toEqual(['a=A', 'b=B', 'c=C']);
  expect(sink.unread).toEqual(['c']);
  expect(lines.map(({ kind, rest }) => `${kind} ${rest}`)).toEqual(['big d']);
  sink.check();
});

it('after a file that cannot be saved the answer is read to its end, and the first reason is thrown', async () => {
  const text = 'small a\nsmall b\nstream N 2\nA\nN\nB\nN\nstreamed 0\nend 1 0\n';
  let tries = 0;
  const sink = new SmallFiles(async (name) => {
    tries += 1;
    throw new Error(`no room for ${name}`);
  });
  await readAnswer(new ByteReader(Readable.from([Buffer.from(text)])), 1, sink);
  expect(tries).toBe(1);
  expect(() => sink.check()).toThrow('no room for a');
});
