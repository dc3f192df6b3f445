import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fullAds, localWorld, parseSubmit } from '../../src/submit/api.ts';

let cwd = '';

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'gs-'));
  writeFileSync(join(cwd, 'job.sh'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

function submit(lines: string, readOnly = false) {
  const world = localWorld({ readOnly, environment: { PATH: '/usr/bin:/bin' } });
  const text = `executable = job.sh\n${lines}\n`;
  return parseSubmit({ text, file: 'job.sub', cwd, world, owner: 'me', now: 1_800_000_000 });
}

describe('this machine', () => {
  it('runs the command of a list without a shell, in the submit directory', () => {
    writeFileSync(join(cwd, 'gen.sh'), '#!/bin/sh\npwd\nprintf "%s\\n" "$@"\nexit 3\n', { mode: 0o755 });
    const cluster = submit('arguments = $(x)\nqueue x from ./gen.sh a;b $HOME |');
    expect([...fullAds(cluster)].map((ad) => ad['Args'])).toEqual([`"${cwd}"`, '"a;b"', '"$HOME"']);
    expect(() => submit('queue x from ./none.sh |')).toThrow(/not a valid command: No such file or directory/);
  });

  it('keeps what an included command said, but in a dry run', () => {
    const text = 'include command into kept.inc : echo arguments=kept\nqueue';
    submit(text, true);
    expect(existsSync(join(cwd, 'kept.inc'))).toBe(false);
    submit(text);
    expect(readFileSync(join(cwd, 'kept.inc'), 'utf8')).toBe('arguments=kept\n');
  });

  it('measures files and what is below directories', () => {
    mkdirSync(join(cwd, 'data/deep'), { recursive: true });
    writeFileSync(join(cwd, 'data/a'), 'x'.repeat(3000));
    writeFileSync(join(cwd, 'data/deep/b'), 'x'.repeat(3000));
    const [ad] = fullAds(submit('transfer_input_files = data\nqueue'));
    expect([ad?.['ExecutableSize'], ad?.['DiskUsage']]).toEqual(['1', '7']);
  });

  it('finds names with spaces, quotes, newlines and dollars, and links to nowhere', () => {
    const names = ['a b.dat', "it's.dat", 'new\nline.dat', '$(x).dat', 'é☃.dat'];
    for (const name of names) writeFileSync(join(cwd, name), '');
    symlinkSync('nowhere', join(cwd, 'broken.dat'));
    const cluster = submit('input = $(f)\nskip_filechecks = true\nqueue f matching files *.dat');
    expect(cluster.total).toBe(names.length + 1);
  });

  it.skipIf(process.getuid?.() === 0)('refuses an input that it may not read', () => {
    writeFileSync(join(cwd, 'secret'), 'x');
    chmodSync(join(cwd, 'secret'), 0);
    expect(() => submit('input = secret\nqueue')).toThrow(/Permission denied/);
  });
});
