import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { shellWords } from '../../src/util/shell-words.ts';

describe('words of a shell', () => {
  it.each([
    '',
    '  ',
    '--qos=high  -l\tmem=3\n',
    `--constraint="a&b" '-l x y'`,
    `a'b'"c"\\ d ''`,
    `"a\\"b\\\\c\\d" 'it'\\''s'`,
    `'$(touch x)' "\\$HOME" \\\\ ä'ö ü'`,
  ])('are split as sh splits %j', (text) => {
    const script = `set -f; for word in ${text.replaceAll('\n', ' ')}; do printf '%s\\0' "$word"; done`;
    const said = execFileSync('sh', ['-c', script], { encoding: 'utf8' });
    expect(shellWords(text)).toEqual(said.split('\0').slice(0, -1));
  });

  it.each([`"a`, `it's`, `a\\`])('are none where %j ends too early', (text) => {
    expect(shellWords(text)).toBeUndefined();
  });

  it('mean nothing else: no variable, command or pattern', () => {
    expect(shellWords('$HOME `id` $(id) * ; a&b')).toEqual(['$HOME', '`id`', '$(id)', '*', ';', 'a&b']);
  });
});
