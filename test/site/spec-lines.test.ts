import { spawnSync } from 'node:child_process';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fork } from '../../src/backends/fork.ts';
import { octalDecode, octalEscape, octalWord, percentDecode } from '../../src/site/escape.ts';
import { specLines, unfit } from '../../src/site/spec-lines.ts';
import { NASTY } from '../conformance/nasty.ts';
import { spec } from '../conformance/kit.ts';

const text = fc.string({ unit: 'binary' }).filter((s) => !s.includes('\0') && Buffer.from(s).toString() === s);

describe('octalEscape', () => {
  it('makes one printable line, a word without blanks, and never two of one', () => {
    fc.assert(
      fc.property(text, (s) => {
        expect(octalEscape(s)).toMatch(/^[ -~]*$/);
        expect(octalWord(s)).toMatch(/^[!-~]*$/);
        expect(octalDecode(octalEscape(s))).toBe(s);
      }),
    );
    const escaped = NASTY.map(octalEscape);
    expect(new Set(escaped).size).toBe(NASTY.length);
  });

  it.each([['dash'], ['bash', '--posix'], ['busybox', 'sh']])('is undone by printf of %s', (...shell) => {
    const [command = '', ...args] = shell;
    const script = 'for a do printf "%b\\0" "$a"; done';
    const words = [...NASTY, ...fc.sample(text, { numRuns: 100, seed: 7 })];
    const found = spawnSync(command, [...args, '-c', script, 'sh', ...words.map(octalEscape)], { encoding: 'utf8' });
    expect(found.stdout.split('\0').slice(0, -1)).toEqual(words);
  });

  it('refuses a NUL', () => {
    expect(() => octalEscape('a\0b')).toThrow(RangeError);
  });
});

describe('percentDecode', () => {
  it('undoes encodeURIComponent, and keeps what is no UTF-8 apart', () => {
    fc.assert(
      fc.property(text, (s) => {
        expect(percentDecode(encodeURIComponent(s))).toBe(s);
      }),
    );
    expect(percentDecode('a%FF')).not.toBe(percentDecode('a%FE'));
  });
});

describe('specLines', () => {
  it('are printable lines that end with `end`, whatever the job is', () => {
    fc.assert(
      fc.property(fc.array(text), fc.dictionary(text, text), text, (args, env, cwd) => {
        const lines = specLines(spec('a.1.0.1', { args, env, cwd }), fork);
        expect(lines.at(-1)).toBe('end');
        expect(lines.filter((line) => line === 'end').length).toBe(1);
        expect(lines.every((line) => /^[a-z]+( [ -~]*)?$/.test(line))).toBe(true);
      }),
    );
  });
});

describe('unfit', () => {
  it.each([
    [{ inputs: [{ kind: 'directory' as const, name: '../x' }] }, "'../x'"],
    [{ inputs: [{ kind: 'directory' as const, name: '/x' }] }, "'/x'"],
    [{ env: { 'A=B': 'x' } }, "'A=B'"],
    [{ args: ['a\0b'] }, 'NUL'],
  ])('says what is not possible: %j', (more, message) => {
    expect(unfit(spec('a.1.0.1', more))).toContain(message);
  });
  it('has nothing against an ordinary job', () => {
    expect(
      unfit(spec('a.1.0.1', { args: [...NASTY], inputs: [{ kind: 'directory', name: 'a/..b' }] })),
    ).toBeUndefined();
  });
});
