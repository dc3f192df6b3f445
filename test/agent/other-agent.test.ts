import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';

let lost: TestAgent;
let present: TestAgent;
beforeAll(() => {
  lost = new TestAgent();
  present = new TestAgent();
  for (const agent of [lost, present])
    agent.site('c1', { url: 'local', batch: 'fork', more: `scratch = "${lost.dir}/site"\n[limits]\nrunning = 2\n` });
});
afterAll(async () => {
  await lost.end();
  await present.end();
});

it('an audit says what another agent has at the site, and since when', { timeout: 120_000 }, async () => {
  expect(await present.ok('site', 'audit', 'c1')).toBe('c1 and the queue agree.\n');
  const cluster = await lost.submit(
    [
      'universe = grid',
      'grid_resource = batch fork c1',
      'executable = /bin/sh',
      `arguments = "-c 'echo begun > ${lost.dir}/$(Process); while [ ! -e ${lost.dir}/go-$(Process) ]; do sleep 0.1; done'"`,
      'transfer_executable = false',
      'queue 2',
    ].join('\n'),
  );
  await lost.ok('wait', `${cluster}`, '--until', 'start', '--timeout', '60');
  // Its daemons have stopped by the time one of the jobs ends.
  await lost.ok('down');
  lost.file('../go-0', '');
  const said = await until('the end of one job', async () => {
    const text = await present.ok('site', 'audit', 'c1');
    return /1 ended/.test(text) ? text : undefined;
  });
  expect(said).toMatch(
    /^c1 and the queue agree\.\nc1 also holds 2 jobs of another agent, [A-Za-z0-9_-]{10} \(1 ended, the last of .* ago\)\.\n$/,
  );
  const [other] = JSON.parse(await present.ok('site', 'audit', 'c1', '--json')) as Record<string, unknown>[];
  expect(other).toMatchObject({ where: 'other-agent', jobs: 2, ended: 1, queued: 0 });
  expect(Math.abs(Number(other?.['newest']) - Date.now() / 1000)).toBeLessThan(120);
  // Nothing of the other agent's is cleaned.
  await present.ok('site', 'audit', 'c1', '--clean', 'all');
  expect(await present.ok('site', 'audit', 'c1')).toMatch(/also holds 2 jobs of another agent, /);
  lost.file('../go-1', '');
  await lost.ok('up');
  await lost.ok('wait', '--no-outcome', `${cluster}`, '--timeout', '60');
  expect(existsSync(join(lost.dir, '1'))).toBe(true);
  const quiet = await until('nothing to be left there', async () => {
    const text = await present.ok('site', 'audit', 'c1');
    return text === 'c1 and the queue agree.\n' ? text : undefined;
  });
  expect(quiet).toBeDefined();
});
