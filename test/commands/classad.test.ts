import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gryphus } from './cli.ts';

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'gry-'));
});
afterAll(() => rmSync(home, { recursive: true }));
const run = (words: readonly string[], stdin?: string) =>
  gryphus(words, { home, ...(stdin === undefined ? {} : { stdin }) });

/** expr, ad, target, kind, and the answers of HTCondor's library in its old and its new mode. */
type Case = readonly [string, string | null, string | null, string, string, string];
const CASES = readFileSync(new URL('../fixtures/classad.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Case);

describe('classad eval --jsonl', () => {
  it("gives all of the real library's answers, in one process", async () => {
    const questions = CASES.map(([expr, ad, target, kind]) => `${JSON.stringify({ expr, ad, target, kind })}\n`);
    const { stdout, stderr, exit } = await run(['classad', 'eval', '--jsonl'], questions.join(''));
    expect({ stderr, exit }).toEqual({ stderr: '', exit: 0 });
    const answers = stdout.trimEnd().split('\n');
    expect(answers).toHaveLength(CASES.length);
    const wrong = CASES.flatMap((one, i) => {
      const got = JSON.parse(answers[i] ?? '') as { result: string; result_new: string };
      return got.result === one[4] && got.result_new === one[5] ? [] : [{ one, got }];
    });
    expect(wrong).toEqual([]);
  });
});

describe('classad eval --jsonl, of lines that are no records', () => {
  it('answers all the others, and tells the first bad one', async () => {
    const lines = ['{"expr":"1+1"}', 'oops', '{"expr":2}', '{"expr":"constructor","kind":"match"}', '{"expr":"2"}'];
    const { stdout, stderr, exit } = await run(['classad', 'eval', '--jsonl'], `${lines.join('\n')}\n`);
    const told = stdout.trimEnd().split('\n');
    expect(told.map((line) => Object.keys(JSON.parse(line) as object)[0])).toEqual([
      'result',
      'error',
      'error',
      'result',
      'result',
    ]);
    expect(stderr).toContain('line 2: not JSON');
    expect(exit).toBe(65);
  });
});

describe('an expression that does not parse', () => {
  it.each([
    ['1 +', 'line 1, column 4: expected a value, a name or a bracket, found the end'],
    ['a ==\n  == 3', "line 2, column 3: expected a value, a name or a bracket, found '=='"],
  ])('%j: line, column and what was expected', async (text, message) => {
    const { stdout, stderr, exit } = await run(['classad', 'eval', text]);
    expect({ stdout, exit }).toEqual({ stdout: '', exit: 65 });
    expect(stderr).toContain(message);
  });

  it.each([
    ['old.ad', 'A = 1\n\nB = = 2\n'],
    ['new.ad', '[ A = 1;\n\n  B = = 2 ]\n'],
  ])('in %s: the file, too', async (name, text) => {
    writeFileSync(join(home, name), text);
    const { stderr, exit } = await run(['classad', 'eval', '--ad', name, 'A']);
    expect(exit).toBe(65);
    expect(stderr).toMatch(new RegExp(`${name}: line 3, column \\d: expected a value`));
  });

  it('is refused where it stands in a submit file', async () => {
    writeFileSync(
      join(home, 'bad.sub'),
      'executable = /bin/true\n# its policy\nperiodic_hold = NumJobStarts >\nqueue\n',
    );
    const { stderr, exit } = await run(['submit', '--dry-run', 'bad.sub']);
    expect(exit).not.toBe(0);
    expect(stderr).toContain('on Line 3 of bad.sub');
    expect(stderr).toContain('column 15: expected a value');
  });
});
