import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nameMatcher, patternFault, withStarsOnly } from '../../src/util/name-patterns.ts';

const matching = (pattern: string, names: readonly string[]) => names.filter(nameMatcher([pattern]));

describe('a pattern of names', () => {
  it('matches as in a shell', () => {
    const names = [
      'a.out',
      '.a.out',
      'b.out',
      'logs/a.dat',
      'logs/.b.dat',
      'logs/x/a.dat',
      'ä.out',
      '[.out',
      '-.out',
      '].out',
    ];
    expect(matching('*.out', names)).toEqual(['a.out', 'b.out', 'ä.out', '[.out', '-.out', '].out']);
    expect(matching('?.out', names)).toEqual(['a.out', 'b.out', 'ä.out', '[.out', '-.out', '].out']);
    expect(matching('.*', names)).toEqual(['.a.out']);
    expect(matching('*/*', names)).toEqual(['logs/a.dat']);
    expect(matching('logs/*/[a-c].dat', names)).toEqual(['logs/x/a.dat']);
    expect(matching('[!a-b].out', names)).toEqual(['ä.out', '[.out', '-.out', '].out']);
    expect(matching('[]-].out', names)).toEqual(['-.out', '].out']);
    expect(matching('[.out', names)).toEqual(['[.out']);
    expect(matching('a.out', names)).toEqual(['a.out']);
  });

  it('takes no long time for any name', () => {
    const began = performance.now();
    expect(nameMatcher([`${'*a'.repeat(100)}b`])('a'.repeat(20_000))).toBe(false);
    expect(performance.now() - began).toBeLessThan(2000);
  });

  it.each([
    ['/etc/*', 'is absolute'],
    ['../*', "is outside the job's directory"],
    ['a/', 'is not the pattern of a file'],
    ['./a', 'is not the pattern of a file'],
    ['a\\*', 'contains a backslash'],
    ['a\0', 'contains a NUL character'],
  ])('%j is none', (pattern, why) => expect(patternFault(pattern)).toBe(why));

  const char = fc.constantFrom('a', 'b', '.', '*', '?', '[', ']', '!', '-', 'ü');
  const pattern = fc.string({ unit: char, minLength: 1, maxLength: 6 });
  const name = fc.string({
    unit: fc.constantFrom('a', 'b', '.', '-', 'ü', ' ', "'", '\n'),
    minLength: 1,
    maxLength: 5,
  });

  it('is matched by what a site is told of it', () => {
    fc.assert(
      fc.property(pattern, name, (one, other) => {
        const told = withStarsOnly(one);
        expect(told).toMatch(/^[\w.+,@=*-]+$/);
        if (nameMatcher([one])(other))
          expect(other).toMatch(new RegExp(`^${told.replace(/[.+]/g, '\\$&').replaceAll('*', '[^]*')}$`));
      }),
      { numRuns: 2000 },
    );
  });

  it('matches the files that bash finds', () => {
    const dir = mkdtempSync(join(tmpdir(), 'gry-patterns-'));
    try {
      const names = ['a', 'b', 'ab', 'a.b', '.a', '-', 'a-b', ']', '!', 'ba', 'aab', 'a b', "a'b"];
      mkdirSync(join(dir, 'work'));
      for (const one of names) writeFileSync(join(dir, 'work', one), '');
      const sample = fc.sample(pattern, 150).filter((one) => !one.includes('ü') && !/^\.+$|\[-|-\]|.-.?-/.test(one));
      const script = 'cd work; shopt -s nullglob; IFS=; for p do printf "%s\\n" "=" $p; done';
      const said = execFileSync('bash', ['-c', script, 'sh', ...sample], {
        cwd: dir,
        encoding: 'utf8',
        env: { LC_ALL: 'C' },
      });
      const found = said
        .split('=\n')
        .slice(1)
        .map((text) => text.split('\n').filter((one) => one !== ''));
      for (const [i, one] of sample.entries()) {
        // A word without a special character is itself, whether there is such a file or not.
        if (!/[*?[]/.test(one)) continue;
        const globbed = (found[i] ?? []).filter((each) => names.includes(each));
        expect([one, matching(one, names).sort()]).toEqual([one, globbed.sort()]);
      }
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
