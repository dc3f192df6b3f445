import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gryphus } from './cli.ts';

let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'gry-'));
  const text = 'executable = /bin/true\nhold = true\n+Queues = "main,debug"\nqueue 2\n';
  await gryphus(['submit'], { home, stdin: text });
});
afterAll(async () => {
  await gryphus(['down'], { home });
  rmSync(home, { recursive: true });
});
const edit = (...words: readonly string[]) => gryphus(['edit', '1.0', ...words], { home });
const value = async (name: string) => (await gryphus(['q', '1.0', '-af', name], { home })).stdout.trim();

describe('edit refuses', () => {
  it.each([
    ['Owner="root"', 'Update of immutable attribute "Owner" is not allowed.'],
    ['owner="root"', 'Update of immutable attribute "owner" is not allowed.'],
    ['User="root@x"', 'Update of immutable attribute "User" is not allowed.'],
    ['ClusterId=9', 'Update of immutable attribute "ClusterId" is not allowed.'],
    ['JobUniverse=9', 'Update of immutable attribute "JobUniverse" is not allowed.'],
    ['JobStatus=2', 'Update of immutable attribute "JobStatus" is not allowed.'],
    ['GryphusMoveTo="x"', 'Update of immutable attribute "GryphusMoveTo" is not allowed.'],
    ['x509UserProxySubject="/CN=x"', 'Update of secure attribute "x509UserProxySubject" is not allowed.'],
  ])('%s: what is not the user’s, and changes nothing', async (assignment, message) => {
    const { stdout, stderr, exit } = await edit('JobPrio=5', assignment);
    expect(stderr.split('\n')[0]).toBe(`gryphus: ${message}`);
    expect([stdout, exit, await value('JobPrio')]).toEqual(['', 77, '0']);
  });

  it.each([
    [
      'BatchQueue=main',
      'BatchQueue must be a string, and main is undefined in job 1.0: the job has no attribute main.',
      `'BatchQueue="main"'`,
    ],
    ['BatchQueue=7', 'BatchQueue must be a string, and 7 is a number in job 1.0.', `'BatchQueue="7"'`],
    ['Iwd=JobPrio', 'Iwd must be a string, and JobPrio is a number in job 1.0.', ''],
    ['RequestMemory="4G"', 'RequestMemory must be a number, and "4G" is a string in job 1.0.', ''],
    [
      'RequestCpus=many',
      'RequestCpus must be a number, and many is undefined in job 1.0: the job has no attribute many.',
      '',
    ],
  ])('%s: a value that cannot be', async (assignment, message, remedy) => {
    const { stderr, exit } = await edit(assignment);
    expect(stderr.split('\n')[0]).toBe(`gryphus: ${message}`);
    expect(stderr).toContain(remedy);
    expect(exit).toBe(65);
  });
});

it('edit takes expressions that become what is wanted, and says of others what is undefined', async () => {
  expect(await edit('BatchQueue=split(Queues, ",")[1]', 'RequestMemory=128 * 2')).toMatchObject({
    exit: 0,
    stderr: '',
  });
  expect(await value('BatchQueue')).toBe('debug');
  expect(await edit('BatchQueue=undefined')).toMatchObject({ exit: 0, stderr: '' });
  expect(await edit('Mine=yours')).toMatchObject({
    exit: 0,
    stdout:
      'Job 1.0 changed; Mine is undefined, because the job has no attribute yours\nSet attribute "Mine" for 1 matching jobs.\n',
  });
});
