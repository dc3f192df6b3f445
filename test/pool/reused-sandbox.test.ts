import { createHash } from 'node:crypto';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hasSmallFiles, overwrite, ReusedSandbox } from '../../src/pool/worker/reused-sandbox.ts';
import type { RunSpec } from '../../src/pool/wire/wire.ts';
import type { Blob, SiteFile } from '../../src/site/contract.ts';

describe('a sandbox that jobs use one after another', () => {
  let dir: string;
  let work: string;
  let sandbox: ReusedSandbox;
  const contents = new Map<string, Buffer>();
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'gryphus reused '));
    work = join(dir, 'work');
    mkdirSync(work);
    sandbox = new ReusedSandbox(work);
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  function blob(text: string): SiteFile & { kind: 'blob' } {
    const content = Buffer.from(text);
    const sha256 = createHash('sha256').update(content).digest('hex');
    contents.set(sha256, content);
    return { kind: 'blob', blob: { sha256, bytes: content.length, path: '/nowhere' } };
  }

  const program = blob('#!/bin/sh\ncat "$1"\n');
  function spec(inputs: Readonly<Record<string, string>>, others: Partial<RunSpec> = {}): RunSpec {
    const files = Object.entries(inputs).map(
      ([name, text]) => ({ kind: 'file', name, file: blob(text), executable: false }) as const,
    );
    return { executable: program, args: [], env: {}, inputs: files, joinStderr: false, ...others };
  }
  const read: string[] = [];
  const contentOf = ({ sha256 }: Blob): Buffer => {
    read.push(sha256);
    const found = contents.get(sha256);
    if (!found) throw new Error('not there');
    return found;
  };
  const furnish = (inputs: Readonly<Record<string, string>>, others?: Partial<RunSpec>) =>
    sandbox.furnish(spec(inputs, others), join(dir, 'stdin'), contentOf);
  const text = (name: string) => readFileSync(join(work, name), 'utf8');
  const inode = (name: string) => lstatSync(join(work, name)).ino;
  /** Until a change would be visible in the times of the files. */
  const tick = () => new Promise((done) => setTimeout(done, 60));

  it('has the program, executable, and the inputs under their names', () => {
    furnish({ 'in put': 'one', b: 'two' });
    expect(readdirSync(work).sort()).toEqual(['b', 'condor_exec.exe', 'in put']);
    expect([text('in put'), text('b')]).toEqual(['one', 'two']);
    expect(lstatSync(join(work, 'condor_exec.exe')).mode & 0o777).toBe(0o700);
    expect(lstatSync(join(work, 'b')).mode & 0o777).toBe(0o600);
  });

  it('writes no file again that the next job needs as it is', async () => {
    furnish({ a: 'same' });
    await tick();
    furnish({ a: 'same' });
    const [file, exe] = [inode('a'), inode('condor_exec.exe')];
    read.length = 0;
    furnish({ a: 'same' });
    expect(read).toEqual([]);
    expect([inode('a'), inode('condor_exec.exe')]).toEqual([file, exe]);
  });

  it('gives the next input the file of the one before, and leaves nothing of it', () => {
    furnish({ 'in.1': 'the first and longer' });
    const file = inode('in.1');
    furnish({ 'in.2': 'second' });
    expect(readdirSync(work).sort()).toEqual(['condor_exec.exe', 'in.2']);
    expect([text('in.2'), inode('in.2')]).toEqual(['second', file]);
  });

  it.each<[string, () => void]>([
    ['wrote the same number of bytes to it', () => writeFileSync(join(work, 'a'), 'SAME')],
    [
      'hid that by setting its times',
      () => {
        const { atime, mtime } = lstatSync(join(work, 'a'));
        writeFileSync(join(work, 'a'), 'SAME');
        utimesSync(join(work, 'a'), atime, mtime);
      },
    ],
    ['removed it', () => rmSync(join(work, 'a'))],
    ['may not read it any more', () => chmodSync(join(work, 'a'), 0)],
    [
      'put a directory there',
      () => {
        rmSync(join(work, 'a'));
        mkdirSync(join(work, 'a'));
        writeFileSync(join(work, 'a', 'x'), 'x');
      },
    ],
  ])('restores an input when the job before %s', async (_, change) => {
    furnish({ a: 'same' });
    change();
    furnish({ a: 'same' });
    expect(text('a')).toBe('same');
    await tick();
    furnish({ a: 'same' });
    change();
    furnish({ a: 'same' });
    expect(text('a')).toBe('same');
    expect(lstatSync(join(work, 'a')).mode & 0o777).toBe(0o600);
  });

  it('never writes to a file of the user that a job linked there, or to a link that it kept', () => {
    const mine = join(dir, 'mine');
    writeFileSync(mine, 'mine');
    furnish({ a: 'one' });
    linkSync(join(work, 'a'), join(dir, 'kept'));
    furnish({ a: 'two' });
    expect([text('a'), readFileSync(join(dir, 'kept'), 'utf8')]).toEqual(['two', 'one']);
    rmSync(join(work, 'a'));
    symlinkSync(mine, join(work, 'a'));
    furnish({ a: 'three' });
    expect([text('a'), readFileSync(mine, 'utf8')]).toEqual(['three', 'mine']);
    symlinkSync(mine, join(work, '.job.ad'));
    overwrite(join(work, '.job.ad'), Buffer.from('ad'));
    expect([text('.job.ad'), readFileSync(mine, 'utf8')]).toEqual(['ad', 'mine']);
  });

  it('is emptied of everything that a job made', () => {
    furnish({ a: 'one' });
    writeFileSync(join(work, 'out'), '');
    writeFileSync(join(work, '.job.ad'), '');
    mkdirSync(join(work, 'd'));
    writeFileSync(join(work, 'd', 'f'), '');
    sandbox.empty(new Set(['.job.ad']));
    expect(readdirSync(work).sort()).toEqual(['.job.ad', 'a', 'condor_exec.exe']);
  });

  it('keeps the standard input beside it', () => {
    furnish({}, { stdin: blob('hear') });
    furnish({}, { stdin: blob('me') });
    expect(readFileSync(join(dir, 'stdin'), 'utf8')).toBe('me');
    expect(readdirSync(work)).toEqual(['condor_exec.exe']);
  });

  it('is for few small files in one directory', () => {
    const large = { kind: 'blob', blob: { sha256: 'x', bytes: 1 << 21, path: '/x' } } as const;
    const file = (name: string, of: SiteFile) => ({ kind: 'file', name, file: of, executable: false }) as const;
    expect(hasSmallFiles(spec({ a: 'x' }))).toBe(true);
    expect(hasSmallFiles({ ...spec({}), executable: large })).toBe(false);
    expect(hasSmallFiles({ ...spec({}), executable: { kind: 'there', path: 'x' } })).toBe(false);
    expect(hasSmallFiles({ ...spec({}), stdin: large })).toBe(false);
    for (const odd of [
      file('a', large),
      file('d/a', blob('x')),
      file('condor_exec.exe', blob('x')),
      file('a', { kind: 'there', path: '/a' }),
      { ...file('a', blob('x')), restored: true as const },
      { kind: 'directory', name: 'd' } as const,
    ])
      expect(hasSmallFiles({ ...spec({}), inputs: [odd] })).toBe(false);
  });
});
