import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { destination, jobFiles } from '../../src/gridmanager/files.ts';
import { Attrs } from '../../src/job/attrs.ts';
import { quoted } from '../../src/job/values.ts';
import { parseRemaps } from '../../src/staging/transfer-lists.ts';

const ad = (attrs: Record<string, string>) => new Attrs({ Iwd: '"/home/j"', Cmd: '"/bin/prog"', ...attrs });

describe('where a job runs', () => {
  it.each([
    ['a plain vanilla job on this machine', {}, true, false],
    ['the same at another site', {}, false, true],
    ['one that names inputs', { TransferInput: '"a,b"' }, true, true],
    ['should_transfer_files = YES', { ShouldTransferFiles: '"YES"' }, true, true],
    ['should_transfer_files = NO', { ShouldTransferFiles: '"NO"' }, false, false],
    ['a grid job on this machine', { JobUniverse: '9' }, true, true],
    ['the local universe', { JobUniverse: '12', TransferInput: '"a"' }, true, false],
    ['the scheduler universe', { JobUniverse: '7' }, true, false],
  ])('%s', (_, attrs, here, sandbox) => {
    expect(jobFiles(ad(attrs), here).sandbox).toBe(sandbox);
  });

  it('names its files absolutely, and keeps the slash that means the contents', () => {
    const files = jobFiles(
      ad({ TransferInput: '" a b ,,sub/ , /abs"', Out: '"o.txt"', In: '"/dev/null"', Err: '""' }),
      false,
    );
    expect(files.inputs).toEqual(['/home/j/a b', '/home/j/sub/', '/abs']);
    expect(files.stdout).toBe('/home/j/o.txt');
    expect(files.stdin).toBeUndefined();
    expect(files.stderr).toBeUndefined();
  });
});

describe('transfer_output_remaps', () => {
  it('reads pairs, escapes and blanks', () => {
    expect([...parseRemaps(' a = b ; c\\;d=e\\=f;;x = /abs/y')]).toEqual([
      ['a', 'b'],
      ['c;d', 'e=f'],
      ['x', '/abs/y'],
    ]);
  });

  it('reads back every name that is written with escapes', () => {
    const name = fc.string({ minLength: 1 }).filter((s) => s.trim() === s);
    const escape = (s: string) => s.replaceAll(/[\\;=]/g, '\\$&');
    fc.assert(
      fc.property(name, name, (from, to) => {
        expect([...parseRemaps(`${escape(from)}=${escape(to)}`)]).toEqual([[from, to]]);
      }),
    );
  });

  it('moves files and whole directories', () => {
    const files = jobFiles(ad({ TransferOutputRemaps: quoted('out=/data/o; d=other') }), false);
    expect(destination(files, 'out')).toBe('/data/o');
    expect(destination(files, 'd/x/y')).toBe('/home/j/other/x/y');
    expect(destination(files, 'plain')).toBe('/home/j/plain');
  });
});
