import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { MapCommandLine, unnamed } from '../../src/commands/map-words.ts';

const ODD = ["it's", 'a b', '$(id)', 'two\nlines', '`x`', '-n', '', '{}', 'ü"', '\\', '*'];

/** The words that a shell makes of the command line. */
function heard(command: string, inputs: readonly string[], number = 1): string[] {
  const line = new MapCommandLine(command).line(inputs, { number, slot: 1 });
  return execFileSync('/bin/sh', ['-c', `say() { printf '%s\\0' "$@"; }; ${line}`], { encoding: 'utf8' })
    .split('\0')
    .slice(0, -1);
}

describe('the command of a map', () => {
  it('has inputs where {} is, or behind it, each as one word whatever is in it', () => {
    for (const odd of ODD) {
      expect(heard('say x {} y', [odd])).toEqual(['x', odd, 'y']);
      expect(heard('say', [odd, 'second'])).toEqual([odd, 'second']);
      expect(new MapCommandLine('say  x\t{} p={}').words([odd], { number: 1, slot: 1 })).toEqual([
        'say',
        'x',
        odd,
        `p=${odd}`,
      ]);
    }
  });

  it('has those of single lists, their parts, and the number of the task', () => {
    expect(heard('say {2} {1} {#}', ['a b', "it's"], 7)).toEqual(["it's", 'a b', '7']);
    expect(heard('say {} {.} {/} {//} {/.}', ['/data/x y.d/run.tar.gz'])).toEqual([
      '/data/x y.d/run.tar.gz',
      '/data/x y.d/run.tar',
      'run.tar.gz',
      '/data/x y.d',
      'run.tar',
    ]);
    expect(heard('say {1/.}-{2.} {1//}', ['a.b/c', '.x/y', 'z'])).toEqual(['c-.x/y', 'a.b']);
    expect(heard('say {.} {//}', ['plain'])).toEqual(['plain', '.']);
    expect(new MapCommandLine('cp {1} {1.}.bak').words(['a b.txt', 'x'], { number: 1, slot: 1 })).toEqual([
      'cp',
      'a b.txt',
      'a b.bak',
    ]);
    expect(heard('say {#}', ['a'], 3)).toEqual(['3']);
  });

  it('has inputs by name, whatever is in the names', () => {
    const names = ['file', 'a b', 'x.y(z)|w', '', '2'];
    expect(unnamed('{file} {file/.} {a b.} {x.y(z)|w//} ${file} {xay} {} {.} {2}', names)).toBe(
      '{1} {1/.} {2.} {3//} ${file} {xay} {} {.} {5}',
    );
    expect(unnamed('{a} {a.b}', ['a', 'a.b'])).toBe('{1} {2}');
    expect(unnamed('{1}', [])).toBe('{1}');
  });

  it('may lack the last of several inputs, and has none where there are none', () => {
    const pairs = new MapCommandLine('say {1}-{2} {}', { size: 2 });
    expect(pairs.line(['a', 'b'], { number: 1, slot: 1 })).toBe('say a-b a b');
    expect(pairs.line(['c'], { number: 2, slot: 1 })).toBe('say c- c');
    expect(() => new MapCommandLine('say {3}', { size: 2 }).line(['a', 'b'], { number: 1, slot: 1 })).toThrow(
      'The command uses {3}',
    );
    expect(new MapCommandLine('/bin/say {#}', { size: 0 }).words([], { number: 3, slot: 1 })).toEqual([
      '/bin/say',
      '3',
    ]);
    expect(new MapCommandLine('/bin/say', { size: 0 }).words([], { number: 3, slot: 1 })).toEqual(['/bin/say']);
    expect(new MapCommandLine('say', { size: 3 }).line(['a', 'b c'], { number: 1, slot: 1 })).toBe("say a 'b c'");
  });

  it("leaves the shell's own braces alone", () => {
    expect(heard('f() { say ${1} ${#}; }; f {1}', ['a b'])).toEqual(['a', 'b', '1']);
    expect(heard('say {a,b} {x} {}', ['i']).slice(-2)).toEqual(['{x}', 'i']);
  });

  it('says when it names a list that is not there', () => {
    expect(() => new MapCommandLine('say {3}').line(['a', 'b'], { number: 1, slot: 1 })).toThrow(
      'The command uses {3}, but a task has 2 inputs.',
    );
  });
});
