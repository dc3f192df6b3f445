import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inputsOf, inputWords } from '../../src/commands/map-inputs.ts';

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

async function read(argv: readonly string[], nul = false): Promise<string[]> {
  const inputs: string[] = [];
  for await (const one of inputsOf(inputWords(argv), nul)) inputs.push(one);
  return inputs;
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
    expect(inputWords(['echo'])).toEqual({ at: 1, from: 'files', words: ['-'] });
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

  it('are refused in one sentence', async () => {
    expect(() => inputWords(['echo', ':::', 'a', '::::', 'b'])).toThrow('There may be one ::: or :::: only');
    expect(() => inputWords(['echo', '::::'])).toThrow('No file of inputs follows ::::.');
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
  });
});
