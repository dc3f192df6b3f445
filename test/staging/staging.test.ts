import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { GryphusError } from '../../src/errors.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { BlobIndex } from '../../src/staging/blobs.ts';
import { resolveInputs } from '../../src/staging/inputs.ts';
import { makeParents, place, within } from '../../src/staging/place.ts';
import { AttemptSpool } from '../../src/staging/streams.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'staging-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const sha = (text: string) => createHash('sha256').update(text).digest('hex');

describe('content addresses', () => {
  it('follow the content, also when size and time stay the same', async () => {
    const file = join(dir, 'a');
    const index = new BlobIndex();
    await writeFile(file, 'one');
    const { mtime } = await stat(file);
    expect((await index.blobOf(file)).sha256).toBe(sha('one'));
    await writeFile(file, 'two');
    await utimes(file, mtime, mtime);
    expect((await index.blobOf(file)).sha256).toBe(sha('two'));
  });

  it('say which file is missing', async () => {
    await expect(new BlobIndex().blobOf(join(dir, 'no such'))).rejects.toMatchObject({
      code: 'input-missing',
      holdCode: 13,
      message: expect.stringContaining('no such does not exist'),
    });
  });
});

describe('transfer lists', () => {
  it('take files by base name, directories whole, and with a slash their contents', async () => {
    await mkdir(join(dir, 'd/sub dir'), { recursive: true });
    await writeFile(join(dir, 'd/sub dir/new\nline'), 'x');
    await writeFile(join(dir, 'd/run'), 'y');
    await chmod(join(dir, 'd/run'), 0o755);
    const names = async (path: string) => (await resolveInputs([path], new BlobIndex())).map((input) => input.name);
    expect(await names(join(dir, 'd'))).toEqual(['d', 'd/run', 'd/sub dir', 'd/sub dir/new\nline']);
    expect(await names(join(dir, 'd/'))).toEqual(['run', 'sub dir', 'sub dir/new\nline']);
    const [run] = await resolveInputs([join(dir, 'd/run')], new BlobIndex());
    expect(run).toMatchObject({ kind: 'file', name: 'run', executable: true });
  });

  it('follow links, and say which leads nowhere, or round and round', async () => {
    const refusal = (path: string) =>
      resolveInputs([path], new BlobIndex()).then(
        () => 'none',
        (thrown: unknown) => (thrown as GryphusError).message,
      );
    await mkdir(join(dir, 'round/in'), { recursive: true });
    await writeFile(join(dir, 'round/in/x'), 'x');
    await symlink('in', join(dir, 'round/also'));
    const names = (await resolveInputs([join(dir, 'round')], new BlobIndex())).map(({ name }) => name);
    expect(names).toEqual(['round', 'round/also', 'round/also/x', 'round/in', 'round/in/x']);
    for (const name of ['one', 'two']) await symlink('..', join(dir, 'round/in', name));
    expect(await refusal(join(dir, 'round'))).toBe(
      `The input ${dir}/round/also/one is a link to a directory that contains it.`,
    );
    await symlink('nosuch', join(dir, 'dangling'));
    expect(await refusal(join(dir, 'dangling'))).toBe(
      `The input ${dir}/dangling is a link to nosuch, which does not exist or cannot be read.`,
    );
    await mkdir(join(dir, 'odd'));
    await writeFile(Buffer.concat([Buffer.from(`${dir}/odd/b`), Buffer.from([0xe4]), Buffer.from('d')]), '');
    expect(await refusal(join(dir, 'odd'))).toBe(`The input ${dir}/odd/b\uFFFDd has a name that is not UTF-8.`);
  });

  it('name a pipe in a directory', async () => {
    await mkdir(join(dir, 'd'));
    execFileSync('mkfifo', [join(dir, 'd/pipe')]);
    await expect(resolveInputs([join(dir, 'd')], new BlobIndex())).rejects.toMatchObject({
      message: `The input ${join(dir, 'd/pipe')} is neither a file nor a directory.`,
    });
  });
});

describe('placing results', () => {
  it('gives them the modes of the one who submitted, the new directories too', async () => {
    await writeFile(join(dir, 'from'), 'x');
    const to = join(dir, 'new/deep/to');
    await makeParents(dir, to, 0o027);
    await place({ from: join(dir, 'from'), to, executable: true, umask: 0o027 });
    const modes = [dirname(dirname(to)), dirname(to), to].map(async (path) => (await stat(path)).mode & 0o777);
    expect(await Promise.all(modes)).toEqual([0o750, 0o750, 0o750]);
    await place({ from: join(dir, 'from'), to, executable: false, umask: 0o002 });
    expect((await stat(to)).mode & 0o777).toBe(0o664);
    await place({ from: join(dir, 'from'), to, executable: false, mode: 0o600, umask: 0o002 });
    expect((await stat(to)).mode & 0o777).toBe(0o600);
  });

  it('replaces a file whole and leaves nothing else behind', async () => {
    await writeFile(join(dir, 'from'), 'new');
    await writeFile(join(dir, 'to'), 'old and longer');
    await place({ from: join(dir, 'from'), to: join(dir, 'to'), executable: true });
    expect(await readFile(join(dir, 'to'), 'utf8')).toBe('new');
    expect((await stat(join(dir, 'to'))).mode & 0o100).toBe(0o100);
    expect((await readdir(dir)).sort()).toEqual(['from', 'to']);
  });

  it('keeps apart the jobs that write one name at once, and takes the longest name', async () => {
    const to = join(dir, 'ü'.repeat(127));
    const texts = await Promise.all(
      Array.from({ length: 20 }, async (_, job) => {
        const text = String(job).repeat(100_000);
        await writeFile(join(dir, `from ${job}`), text);
        return text;
      }),
    );
    await Promise.all(texts.map((_, job) => place({ from: join(dir, `from ${job}`), to, executable: false })));
    expect(texts).toContain(await readFile(to, 'utf8'));
    expect(await readdir(dir)).toHaveLength(texts.length + 1);
  });

  it('says which output cannot be written and why, and what waits', async () => {
    await writeFile(join(dir, 'from'), 'x');
    const to = join(dir, 'nowhere/out');
    await expect(place({ from: join(dir, 'from'), to, executable: false })).rejects.toMatchObject({
      code: 'output-unwritable',
      message: expect.stringContaining('its directory does not exist'),
    });
    await mkdir(join(dir, 'isdir'));
    await expect(place({ from: join(dir, 'from'), to: join(dir, 'isdir'), executable: false })).rejects.toMatchObject({
      code: 'output-unwritable',
    });
  });

  it('tells a full disk from other failures', async () => {
    await writeFile(join(dir, 'from'), 'x');
    await expect(place({ from: join(dir, 'from'), to: '/dev/full', executable: false })).rejects.toMatchObject({
      code: 'disk-full',
    });
  });

  it('writes to devices and does not replace them', async () => {
    await writeFile(join(dir, 'from'), 'x');
    await symlink('/dev/null', join(dir, 'null'));
    await place({ from: join(dir, 'from'), to: '/dev/null', executable: false });
    expect((await stat('/dev/null')).isCharacterDevice()).toBe(true);
  });

  it('makes directories only below the base', async () => {
    await makeParents(dir, join(dir, 'a/b/c'));
    expect(await readdir(join(dir, 'a'))).toEqual(['b']);
  });

  it('never leaves its directory', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('..', '.', 'a', 'b c', ''), { maxLength: 8 }), (parts) => {
        try {
          expect(`${within('/base', parts.join('/'))}/`.startsWith('/base/')).toBe(true);
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: 'bad-input' });
        }
      }),
    );
    expect(() => within('/base', '../base2/x')).toThrow(/is outside/);
  });
});

describe('streams', () => {
  it('tell a full disk', async () => {
    const spool = new AttemptSpool(dir);
    const key = 'a.1.0.1' as AttemptKey;
    await spool.prepare(key);
    await symlink('/dev/full', spool.streamPath(key, 'stdout'));
    await expect(spool.write(key, 'stdout', 0, Buffer.from('x'))).rejects.toMatchObject({ code: 'disk-full' });
  });

  it('are whole whatever comes late, twice or overlapping', async () => {
    const whole = Buffer.from(Array.from({ length: 400 }, (_, i) => i % 251));
    let attempt = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(399), fc.nat(120)), { maxLength: 30 }), async (pieces) => {
        const spool = new AttemptSpool(join(dir, 'spool'));
        const key = `agent.1.0.${++attempt}` as const;
        let have = 0;
        for (const [offset, length] of [...pieces, [0, 400] as const]) {
          const end = Math.min(400, offset + length);
          const now = await spool.write(key, 'stdout', offset, whole.subarray(offset, end));
          have = offset > have ? have : Math.max(have, end);
          expect(now).toBe(have);
        }
        expect(await readFile(spool.streamPath(key, 'stdout'))).toEqual(whole);
        expect((await stat(spool.directory(key))).mode & 0o777).toBe(0o700);
      }),
      { numRuns: 40 },
    );
  });
});
