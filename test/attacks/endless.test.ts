import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { Sites } from './hostile.ts';

let sites: Sites;
beforeAll(async () => {
  sites = await Sites.open();
  sites.fair('fair');
  await sites.agent.ok('up');
  const cluster = await sites.submit('fair', 'true');
  await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
}, 120_000);
afterAll(() => sites.close());

/** The most memory that a process has had, in MB. */
function peakMb(pid: number): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

it.each([
  ['line', `printf 'job '; tr '\\0' x </dev/zero`, /more than 1048576 bytes at once/],
  ['data', `printf 'data x out 0 9007199254740991\\n'; cat /dev/zero`, /9007199254740991 bytes at once/],
  ['asked', `printf 'asked x 9007199254740991\\n'; cat /dev/zero`, /9007199254740991 bytes at once/],
  ['words', `yes 'job nothing of ours'`, /more than 128 MB of text/],
])(
  'a site that answers without end is reported as such, and takes no memory: %s',
  async (name, answer, words) => {
    const [pid = 0] = await sites.managers();
    sites.evil(name, `do_poll() { body "$1" >/dev/null; ${answer}; }`);
    const cluster = await sites.submit(name, 'true');
    await until(
      'why to say so',
      async () => words.test(await sites.agent.ok('why', String(cluster))) || undefined,
      60_000,
    );
    expect(peakMb(pid)).toBeLessThan(450);
    // The other sites are served by the same process.
    const fair = await sites.submit('fair', 'true');
    await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(fair));
    expect(await sites.managers()).toEqual([pid]);
    await sites.agent.ok('rm', '--force', String(cluster));
  },
  120_000,
);

it('outputs into a pipe without a reader hold their jobs, and no other waits for them', async () => {
  execFileSync('mkfifo', [join(sites.agent.work, 'fifo')]);
  const bad: number[] = [];
  for (let i = 0; i < 5; i++) bad.push(await sites.submit('fair', 'echo x', 'output = fifo'));
  const good = await sites.submit('fair', 'echo good', 'output = good.out');
  await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(good));
  expect(sites.agent.read('good.out')).toBe('good\n');
  for (const cluster of bad) {
    const ad = await sites.settled(cluster);
    expect(ad['HoldReason']).toContain('a pipe without a reader');
    await sites.agent.ok('rm', String(cluster));
  }
}, 120_000);
