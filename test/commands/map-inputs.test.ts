import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { grouped, inputsOf, inputWords, namedInputs, type ReadOptions } from '../../src/commands/map-inputs.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'gry-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

function file(name: string, content: string | Buffer): string {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}

async function rows(argv: readonly string[], options: Partial<ReadOptions> = {}): Promise<(readonly string[])[]> {
  const all: (readonly string[])[] = [];
  for await (const row of inputsOf(inputWords(argv), { end: 10, ...options })) all.push(row);
  return all;
}

/** For one list. */
async function read(argv: readonly string[], nul = false): Promise<string[]> {
  return (await rows(argv, { end: nul ? 0 : 10 })).map((row) => {
    expect(row).toHaveLength(1);
    return row[0] ?? '';
  });
}

describe('the inputs of a map', () => {
  it('are words as they are', async () => {
    expect(await read(['echo {}', ':::', 'a b', '', "it's", '$(x)', 'two\nlines', '-k'])).toEqual([
      'a b',
      '',
      "it's",
      '$(x)',
      'two\nlines',
      '-k',
    ]);
    expect(await read(['echo', ':::'])).toEqual([]);
    expect(inputWords(['echo', '--summary', ':::', 'x']).at).toBe(2);
    expect(inputWords(['echo'])).toEqual({ at: 1, lists: [{ from: 'files', words: ['-'], linked: false }] });
  });

  it('are lines of files, whatever is in them', async () => {
    const first = file('a b', 'one\n\ntwo words \r\nü\u2028\rx');
    expect(await read(['echo', '::::', first, file('none', ''), file('more', 'last\n')])).toEqual([
      'one',
      '',
      'two words ',
      'ü\u2028\rx',
      'last',
    ]);
  });

  it('end with NUL where that is said, and may then be longer than a read', async () => {
    const long = 'ü'.repeat(200_000);
    expect(await read(['echo', '::::', file('nul', `a\nb\0${long}\0c\r`)], true)).toEqual(['a\nb', long, 'c\r']);
  });

  it('of several lists are combined, the last varying fastest, or paired up to the length of the shortest', async () => {
    const two = file('two', 'x y\nz\n');
    const all = (list: readonly (readonly string[])[]) => list.map((row) => row.join('|'));
    expect(all(await rows(['echo', ':::', 'a', 'b', '::::', two, ':::', '1', '2']))).toEqual(
      ['a', 'b'].flatMap((a) => ['x y', 'z'].flatMap((b) => ['1', '2'].map((c) => `${a}|${b}|${c}`))),
    );
    expect(all(await rows(['echo', ':::', 'a', 'b', ':::+', '1', '2', '3', ':::', 'p', 'q']))).toEqual([
      'a|1|p',
      'a|1|q',
      'b|2|p',
      'b|2|q',
    ]);
    expect(all(await rows(['echo', ':::', 'a', 'b', 'c', '::::+', two]))).toEqual(['a|x y', 'b|z']);
    expect(await rows(['echo', ':::', 'a', ':::'])).toEqual([]);
    expect(inputWords(['echo', '--summary', ':::', 'x', ':::+', 'y']).at).toBe(2);
  });

  it('stand on one line where it is said what separates them', async () => {
    const csv = file('csv', '1, two,\n3\n');
    expect(await rows(['fit', '::::', csv], { columns: /, ?/u })).toEqual([['1', 'two', ''], ['3']]);
  });

  it('have the names in the first line of each list', async () => {
    const csv = file('named', '\ufeffa,b\n1,2\n3,4\n');
    const named = await namedInputs(inputWords(['echo', '::::', csv, ':::', 'n', 'x', 'y']), {
      end: 10,
      columns: /,/u,
    });
    expect(named.names).toEqual(['a', 'b', 'n']);
    const all: string[] = [];
    for await (const row of named.inputs) all.push(row.join('|'));
    expect(all).toEqual(['1|2|x', '1|2|y', '3|4|x', '3|4|y']);
    await expect(namedInputs(inputWords(['echo', ':::']), { end: 10 })).rejects.toThrow(
      '--header : takes the first line of each list of inputs, and one has none.',
    );
  });

  it('are given out by twos, or not at all', async () => {
    const groups = async (size: number) => {
      const all: (readonly string[])[] = [];
      for await (const row of grouped(inputsOf(inputWords(['echo', ':::', 'a', 'b', 'c']), { end: 10 }), size))
        all.push(row);
      return all;
    };
    expect(await groups(2)).toEqual([['a', 'b'], ['c']]);
    expect(await groups(0)).toEqual([[], [], []]);
    expect(await groups(3)).toEqual([['a', 'b', 'c']]);
  });

  it('are refused in one sentence', async () => {
    expect(() => inputWords(['echo', ':::+', 'a'])).toThrow(':::+ has no list before it to pair with.');
    expect(() => inputWords(['echo', '::::', '-', '::::', '-'])).toThrow(
      'Standard input can supply only one list of inputs.',
    );
    expect(() => inputWords(['echo', '::::'])).toThrow(':::: must be followed by a file of inputs.');
    await expect(read(['echo', '::::', join(dir, 'nosuch')])).rejects.toMatchObject({
      code: 'input-missing',
      message: `Cannot read ${JSON.stringify(join(dir, 'nosuch'))}: no such file or directory.`,
    });
    await expect(read(['echo', '::::', dir])).rejects.toMatchObject({ code: 'input-missing' });
    const bytes = file('latin1', Buffer.from('fine\nb\xe4d\n', 'latin1'));
    await expect(read(['echo', '::::', bytes])).rejects.toMatchObject({
      code: 'bad-input',
      message: `Input 2 of ${JSON.stringify(bytes)} is not UTF-8.`,
    });
    // What `find -print0` writes, read as lines: no program can be given that.
    const zeros = file('zeros', 'fine\na\0b\0');
    await expect(read(['echo', '::::', zeros])).rejects.toMatchObject({
      code: 'bad-input',
      message: `Input 2 of ${JSON.stringify(zeros)} has a NUL byte.`,
    });
    expect(await read(['echo', '::::', zeros], true)).toEqual(['fine\na', 'b']);
  });
});
