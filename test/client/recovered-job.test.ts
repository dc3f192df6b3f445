import { resolve } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recoveredJob, type RecoveryPlace } from '../../src/client/recovered-job.ts';
import { Attrs } from '../../src/job/attrs.ts';
import { quoted, readString } from '../../src/job/values.ts';

const PLACE: RecoveryPlace = {
  owner: 'me',
  umask: 0o022,
  into: '/home/me/recovered',
  isDirectory: (path: string) => path === '/home/me/work',
  gridResource: 'batch slurm c1',
  isHere: false,
};
const ID = { agent: 'A', cluster: 12, proc: 3, attempt: 1 };
const recall = (attrs: Record<string, string>, place = PLACE) =>
  recoveredJob({ key: 'A.12.3.1', prepared: 1, attrs: { JobUniverse: '9', ...attrs }, env: {} }, ID, place);

describe('a job from its record at a site', () => {
  it('keeps its directory if that is there and holds all its files', () => {
    const job = recall({ Iwd: '"/home/me/work"', Out: '"out/a"', UserLog: '"/home/me/work/log"', Err: '"/dev/null"' });
    expect(job).toMatchObject({ moved: false, directory: '/home/me/work' });
    expect(job?.attrs).toMatchObject({ ClusterId: '12', ProcId: '3', Owner: '"me"', Out: '"out/a"' });
  });

  it.each([
    ['a directory that is gone', { Iwd: '"/home/me/gone"' }],
    ['a hidden directory', { Iwd: '"/home/me/.ssh"' }],
    ['a hidden file', { Iwd: '"/home/me/work"', Out: '".bashrc"' }],
    ['a file elsewhere', { Iwd: '"/home/me/work"', Out: '"/home/me/bin/x"' }],
    ['a way out', { Iwd: '"/home/me/work"', Err: '"../bin/x"' }],
    ['a remap out', { Iwd: '"/home/me/work"', TransferOutputRemaps: '"x=../bin/x"' }],
    ['an input elsewhere', { Iwd: '"/home/me/work"', TransferInput: '"/home/me/.ssh/id_rsa"' }],
  ])('gets one of its own for %s', (_, attrs) => {
    const place = { ...PLACE, isDirectory: (path: string) => path !== '/home/me/gone' };
    const job = recall(attrs, place);
    expect(job).toMatchObject({ moved: true, directory: '/home/me/recovered/12.3' });
    const text = JSON.stringify(job?.attrs);
    expect(text).not.toMatch(/\.ssh|\/bin|\.\./);
  });

  it('never runs at home what a site says', () => {
    expect(recall({ JobUniverse: '12' })).toBeUndefined();
    expect(recall({ JobUniverse: '7' })).toBeUndefined();
    expect(recall({ GridResource: '"batch fork local"' })?.attrs['GridResource']).toBe('"batch slurm c1"');
  });

  it('writes nowhere but in its directory, whatever its record says', () => {
    const path = fc
      .array(fc.constantFrom('..', '.', '', 'a', '.b', 'home', 'me', 'work', '/'), { maxLength: 6 })
      .map((parts) => parts.join('/'));
    fc.assert(
      fc.property(path, path, path, (iwd, out, log) => {
        const job = recall(
          { Iwd: quoted(iwd), Out: quoted(out), UserLog: quoted(log) },
          { ...PLACE, isDirectory: () => true },
        );
        const ad = new Attrs(job?.attrs ?? {});
        const directory = resolve(job?.directory ?? '');
        for (const name of ['Out', 'UserLog']) {
          const written = resolve(directory, readString(ad, name) ?? '');
          expect(written === directory || written.startsWith(`${directory}/`) || directory === '/').toBe(true);
          expect(written).not.toMatch(/\/\./);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
