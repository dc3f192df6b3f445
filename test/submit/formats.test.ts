import { execFileSync } from 'node:child_process';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filenameParts } from '../../src/submit/filename.ts';
import { isFormat, printf } from '../../src/util/printf.ts';
import { sizeOf } from '../../src/submit/calculate.ts';

/** The output of the shell's own printf: C's. */
function shellPrintf(pairs: readonly (readonly [string, string])[]): string[] {
  const words = pairs.flatMap(([format, value]) => [`${format}\\n`, value]);
  const script = 'while [ $# -gt 0 ]; do printf "$1" "$2"; shift 2; done';
  const out = execFileSync('bash', ['--norc', '--noprofile', '-c', script, 'bash', ...words], {
    encoding: 'utf8',
    env: { LC_ALL: 'C' },
  });
  return out.split('\n').slice(0, -1);
}

describe('printf', () => {
  it('prints integers as C does', () => {
    const values = ['0', '7', '-7', '123456789012', '-1'];
    const formats = [
      '%lld',
      '%5lld|',
      '%-6lld|',
      '%06lld',
      '%+lld',
      '% lld',
      '%.4lld',
      '%8.3lld',
      '%lx',
      '%#lx',
      '%#lo',
      '%lX',
      '%lu',
    ];
    const pairs = formats.flatMap((format) => values.map((value) => [format, value] as const));
    expect(pairs.map(([format, value]) => printf(format, BigInt(value)))).toEqual(
      shellPrintf(pairs.map(([f, v]) => [f.replaceAll('l', ''), v])),
    );
    expect(printf('%d', 2n ** 32n + 5n)).toBe('5');
    expect(printf('%c', 65n)).toBe('A');
  });

  it('prints reals as C does', () => {
    const values = [
      '0',
      '1',
      '-2.5',
      '0.5',
      '0.125',
      '1250',
      '9.5',
      '99.96',
      '0.00001',
      '314159.26',
      '1e-7',
      '123456789',
      '0.1',
      '9.9999999',
      '1e300',
    ];
    const formats = [
      '%f',
      '%.2f',
      '%10.3f|',
      '%-10.1e|',
      '%e',
      '%E',
      '%g',
      '%.2g',
      '%.1e',
      '%#.0f',
      '%G',
      '%.3g',
      '%#g',
      '%.0f',
      '%+.1f',
      '%010.2f',
      '%.16G',
    ];
    const pairs = formats.flatMap((format) => values.map((value) => [format, value] as const));
    const ours = pairs.map(([format, value]) => printf(format, Number(value)));
    // bash computes in long double: digits beyond a double's may differ there.
    const theirs = shellPrintf(pairs).map((text, i) =>
      pairs[i]?.[0] === '%.16G' || pairs[i]?.[1] === '1e300' ? ours[i] : text,
    );
    expect(ours).toEqual(theirs);
    expect([printf('%a', 1), printf('%a', 0.1), printf('%A', -2)]).toEqual([
      '0x1p+0',
      '0x1.999999999999ap-4',
      '-0X1P+1',
    ]);
  });

  it('knows which formats are safe', () => {
    for (const format of ['%d', 'a%5.1lldb', '%%%i', '%c']) expect(isFormat(format, 'int')).toBe(true);
    for (const format of ['%s', '%f', '', '%', '%d%d', '%*d', '%n', '%%d']) expect(isFormat(format, 'int')).toBe(false);
  });
});

describe('file names', () => {
  it('come apart and together again', () => {
    const part = fc.stringMatching(/^[a-z]{1,4}$/);
    fc.assert(
      fc.property(fc.array(part, { minLength: 1 }), part, part, (dirs, name, extension) => {
        const path = `/${dirs.join('/')}/${name}.${extension}`;
        const take = (letters: string): string => filenameParts(path, letters, '/cwd');
        expect(take('p') + take('n') + take('x')).toBe(path);
        expect(take('pnx')).toBe(path);
        expect(take('d')).toBe(`${dirs.at(-1)}/`);
        expect(take('q')).toBe(`"${path}"`);
        expect(filenameParts(`${name}.${extension}`, 'f', '/cwd')).toBe(`/cwd/${name}.${extension}`);
      }),
    );
  });
});

describe('sizes', () => {
  it.each([
    ['2G', 2048],
    ['1.5 gb', 1536],
    ['100K', 1],
    ['1', 1],
    ['-5', -4],
    ['0.1M', 1],
    [' 7 ', 7],
    ['1T', 1_048_576],
  ])('%s is %d MB', (text, size) => {
    expect(sizeOf(text, 2 ** 20)).toEqual({ value: size, rest: '' });
  });

  it.each(['', 'x', '1B', '1P', '2Gi', '1 GBB', '1e3', '5 5', '1,2', '-'])('%j is none', (text) => {
    expect(sizeOf(text, 2 ** 20)).toBeUndefined();
  });
});
