import fc from 'fast-check';
import { isAbsolute, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { askedFor } from '../../src/staging/asked-for.ts';
import { within } from '../../src/staging/place.ts';
import { plainName } from '../../src/util/plain-name.ts';

const part = fc.oneof(
  fc.constantFrom('a', 'b', 'dir', '.ssh', 'authorized_keys', 'result.dat'),
  fc.constantFrom('.', '..', '', '...', '.. ', '\0', '\n', '~', '$(x)', 'é'),
  fc.string({ maxLength: 6 }),
);
const name = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join('/'));
const plain = fc.array(fc.constantFrom('a', 'b', 'c', 'é x', '..x'), { minLength: 1, maxLength: 4 });

it('a plain name stays in its directory, and is its own plain name', () => {
  fc.assert(
    fc.property(name, (text) => {
      const found = plainName(text);
      if (found === undefined) return;
      expect(found.split('/')).not.toContain('..');
      expect(isAbsolute(found)).toBe(false);
      expect(plainName(found)).toBe(found);
      expect(within('/base', found)).toBe(normalize(join('/base', text)).replace(/\/+$/, ''));
    }),
    { numRuns: 2000 },
  );
});

it('a name that leads out is none', () => {
  for (const text of ['..', '../x', 'a/../../x', '/etc/passwd', './../x', 'a\0b', '//x'])
    expect([text, plainName(text)]).toEqual([text, undefined]);
});

it('only the named outputs that a site offers and what is below them are kept, under their own names', () => {
  fc.assert(
    fc.property(fc.array(name, { maxLength: 4 }), name, (outputs, offered) => {
      const kept = askedFor({ outputs })(offered);
      if (kept === undefined) return;
      const above = outputs.flatMap((output) => plainName(output) ?? []);
      expect(kept).toBe(plainName(offered));
      expect(above.some((one) => one === '' || kept === one || kept.startsWith(`${one}/`))).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

it('a named output comes home however it was written, and so does all below it', () => {
  fc.assert(
    fc.property(
      plain,
      plain,
      fc.constantFrom('', '/', '//'),
      fc.constantFrom('', './', './/'),
      (parts, more, end, begin) => {
        const output = `${begin}${parts.join('/')}${end}`;
        const asked = askedFor({ outputs: [output] });
        expect(asked(output)).toBe(parts.join('/'));
        expect(asked(`${output}/${more.join('/')}`)).toBe([...parts, ...more].join('/'));
        expect(asked(`${parts.join('/')}x`)).toBeUndefined();
      },
    ),
  );
});

it('the whole directory may be asked for', () => {
  expect(askedFor({ outputs: ['.'] })('a/b')).toBe('a/b');
  expect(askedFor({ outputs: ['./'] })('../b')).toBeUndefined();
});

it('a new file is at the top, and nothing that the job was given', () => {
  const asked = askedFor({ outputs: 'new', given: ['in.dat', 'dir'] });
  expect(asked('out.dat')).toBe('out.dat');
  expect(asked('./out.dat')).toBe('out.dat');
  for (const no of [
    'in.dat',
    './in.dat',
    'dir',
    'x/in.dat',
    '.ssh/authorized_keys',
    '../x',
    '/x',
    '',
    '.',
    'condor_exec.exe',
    '.job.ad',
    '_condor_stdout',
  ])
    expect([no, asked(no)]).toEqual([no, undefined]);
  fc.assert(
    fc.property(name, fc.array(part), (offered, given) => {
      const kept = askedFor({ outputs: 'new', given })(offered);
      if (kept === undefined) return;
      expect(kept).not.toContain('/');
      expect(given).not.toContain(kept);
    }),
    { numRuns: 2000 },
  );
});
