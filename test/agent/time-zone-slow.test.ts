import { spawnSync } from 'node:child_process';
import { existsSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { CLI, TestAgent, until } from './agent.ts';
import { daemons } from './everything.ts';
import { MAY_BE_ANOTHER } from './machine.ts';

describe.skipIf(!SLOW || !MAY_BE_ANOTHER)('a machine that gets another time zone while daemons run', () => {
  let agent: TestAgent;
  let etc: string;
  beforeAll(() => {
    agent = new TestAgent({ TZ: undefined });
    etc = join(agent.dir, 'etc');
    spawnSync('cp', ['-a', '/etc', etc]);
    zone('Etc/UTC');
  });
  afterAll(() => agent.end());

  function zone(name: string): void {
    unlinkSync(join(etc, 'localtime'));
    symlinkSync(`/usr/share/zoneinfo/${name}`, join(etc, 'localtime'));
  }

  function run(...words: readonly string[]): string {
    const script = 'mount --bind "$0" /etc && exec "$@"';
    const { stdout, stderr, status } = spawnSync(
      'unshare',
      ['--mount', 'sh', '-c', script, etc, process.execPath, CLI, ...words],
      { cwd: agent.work, env: agent.env, encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(`gryphus ${words.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
    return stdout;
  }

  /** The hours in the heads of the events of the user log. */
  const hours = () =>
    [...(existsSync(join(agent.work, 'log')) ? agent.read('log') : '').matchAll(/^\d{3} \(.*?\) \S+ (\d\d):/gm)].map(
      ([, hour]) => Number(hour),
    );

  it('has the new one in what they write, and no job notices', async () => {
    agent.file('job.sub', 'executable = /bin/true\ntransfer_executable = false\nlog = log\nhold = true\nqueue\n');
    run('submit', 'job.sub');
    await until('the first event', () => hours().length > 0 || undefined);
    const before = daemons(agent).map(({ pid }) => pid);
    zone('Asia/Tokyo');
    // It is nine hours ahead, in every season.
    await until(
      'an event with the time of there',
      () => {
        run('submit', 'job.sub');
        const [first = 0] = hours();
        const ahead = (Number(hours().at(-1)) - first + 24) % 24;
        return ahead === 9 || ahead === 10 || undefined;
      },
      90_000,
    );
    expect(daemons(agent).map(({ pid }) => pid)).toEqual(expect.arrayContaining(before));
    run('release', '1.0');
    run('wait', '--timeout', '60', '1');
  }, 180_000);
});
