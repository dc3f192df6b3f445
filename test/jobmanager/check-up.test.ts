import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openJobManagerSite } from '../../src/jobmanager/client.ts';
import { LocalTransport } from '../../src/transport/local.ts';
import { AGENT, remove, scratchDir } from '../conformance/kit.ts';

const mounted =
  spawnSync('sh', ['-c', 'd=$(mktemp -d) && mount -t tmpfs none "$d" && umount "$d" && rmdir "$d"']).status === 0;

describe.runIf(mounted)('the check-up of a site', () => {
  let home: string;
  let scratch: string;
  beforeEach(() => {
    home = scratchDir();
    scratch = join(home, 'scratch');
    mkdirSync(scratch);
  });
  afterEach(() => {
    spawnSync('umount', ['-l', scratch]);
    remove(home);
  });

  async function faults(options: string) {
    spawnSync('mount', ['-t', 'tmpfs', '-o', `mode=700,${options}`, 'none', scratch]);
    const site = openJobManagerSite({
      name: 'here',
      agentId: AGENT,
      transport: new LocalTransport(home),
      backend: 'fork',
      options: { scratch },
    });
    try {
      return (await site.test()).filter(({ ok }) => !ok);
    } finally {
      await site.close();
    }
  }

  it('says that no program can be started in a directory that is mounted noexec', { timeout: 30_000 }, async () => {
    expect(await faults('size=64m,noexec')).toEqual([
      {
        name: 'exec',
        ok: false,
        message: expect.stringMatching(/a program in .* cannot be started/) as string,
        remedy: expect.stringContaining('noexec') as string,
      },
    ]);
  });

  it('says how little space is left', { timeout: 30_000 }, async () => {
    expect(await faults('size=5m')).toMatchObject([
      { name: 'disk', message: expect.stringMatching(/^[0-5] MB free$/) as string },
    ]);
  });
});
