import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { gryphus } from './cli.ts';

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'gry-'));
});
afterAll(async () => {
  await gryphus(['down'], { home });
  rmSync(home, { recursive: true });
});
const run = (words: readonly string[], stdin?: string) =>
  gryphus(words, { home, ...(stdin === undefined ? {} : { stdin }) });

const ODD = 'ProcId % 2 == 1';

async function submit(jobs: number, more: string): Promise<string> {
  const text = `executable = /bin/sleep\narguments = 600\ntransfer_executable = false\n${more}\nqueue ${jobs}\n`;
  return (await run(['submit', '-terse'], text)).stdout.split('.')[0] ?? '';
}

/** The value of an expression for each job of the cluster, in order of procs. */
async function each(cluster: string, expression: string): Promise<string> {
  return (await run(['q', cluster, '-af', expression])).stdout.replaceAll('\n', ' ').trimEnd();
}

it('--constraint narrows the cluster that is named, in every command that changes jobs', async () => {
  const cluster = await submit(6, 'hold = true');
  const other = await submit(2, 'hold = true');

  const released = await run(['release', cluster, '--constraint', 'ProcId < 2']);
  expect(released).toMatchObject({
    exit: 0,
    stdout: `All jobs in cluster ${cluster} matching constraint (ProcId < 2) have been released (2 jobs)\n`,
    stderr: '',
  });
  expect(await each(cluster, 'JobStatus == 5')).toBe('false false true true true true');

  const held = async (...more: string[]) => (await run(['q', cluster, '-hold', '-af', 'ProcId', ...more])).stdout;
  expect(await held()).toBe('2\n3\n4\n5\n');
  expect(await held('--limit', '1')).toBe('2\n');

  await run(['hold', cluster, '-constraint', ODD, '-reason', 'odd']);
  expect(await each(cluster, 'JobStatus == 5')).toBe('false true true true true true');

  expect(await run(['edit', cluster, '--constraint', ODD, 'JobPrio', '7'])).toMatchObject({
    exit: 0,
    stdout: 'Set attribute "JobPrio" for 3 matching jobs.\n',
  });
  expect(await each(cluster, 'JobPrio')).toBe('0 7 0 7 0 7');
  expect((await run(['edit', `${cluster}.0`, `${cluster}.2`, '-constraint', 'ProcId == 2', 'Mine=1'])).exit).toBe(1);
  expect(await each(cluster, 'Mine')).toBe('undefined undefined 1 undefined undefined undefined');

  // A constraint narrows a job id, too.
  expect(await run(['rm', `${cluster}.2`, `${cluster}.3`, '--constraint', ODD])).toMatchObject({
    exit: 1,
    stdout: `Job ${cluster}.3 marked for removal\n`,
    stderr: `Job ${cluster}.2 not found matching constraint (${ODD})\n`,
  });
  expect((await run(['rm', cluster, '--constraint', ODD])).stdout).toContain('(2 jobs');
  await run(['wait', '--constraint', `ClusterId == ${cluster} && ${ODD}`, '--timeout', '60']);
  expect(await each(cluster, 'ProcId')).toBe('0 2 4');
  expect(await each(other, 'JobStatus')).toBe('5 5');
  await run(['rm', cluster, other]);
});

it('--constraint narrows what is suspended, continued and vacated', async () => {
  const cluster = await submit(2, 'request_cpus = 1\nrequest_memory = 1');
  expect((await run(['wait', cluster, '--until', 'start', '--timeout', '60'])).exit).toBe(0);
  const narrowed = [cluster, '--constraint', 'ProcId == 1'];
  expect(await run(['suspend', ...narrowed])).toMatchObject({
    stdout: `All jobs in cluster ${cluster} matching constraint (ProcId == 1) have been suspended (1 job)\n`,
  });
  await run(['wait', cluster, '--constraint', 'JobStatus != 7', '--timeout', '1']);
  expect(await each(cluster, 'JobStatus')).toBe('2 7');
  expect((await run(['continue', ...narrowed])).stdout).toContain('have been continued (1 job)');
  expect((await run(['vacate', ...narrowed])).stdout).toContain('have been vacated (1 job)');
  expect((await run(['top', ...narrowed, '--json'])).stdout).not.toMatch(/"proc": 0/);
  expect((await run(['rm', cluster, '--all'])).exit).toBe(2);
  await run(['rm', '--all']);
});
