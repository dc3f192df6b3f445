import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { JobUsers } from '../../src/pool/worker/job-users.ts';
import { Run } from '../../src/pool/worker/run.ts';
import { Shells } from '../../src/pool/worker/shells.ts';
import { until } from '../agent/agent.ts';
import { SIZE, SPEC } from './owner/model-station.ts';

const isRoot = process.getuid?.() === 0;
const USER = { name: 'other', uid: 54_322, gid: 54_322, groups: [], home: '/nonexistent', alone: false };

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'shells-'));
  chmodSync(dir, 0o755);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

it.runIf(isRoot)('what changes to the account of a job has none of its variables that load code', async () => {
  // What root's loader is told to say would go into a file there; the job's account may not write to it.
  const trace = join(dir, 'trace');
  const env = { LD_DEBUG: 'files', LD_DEBUG_OUTPUT: trace, PATH: join(dir, 'theirs'), COLOUR: 'red' };
  const key = 'shells.1.0.1';
  const run = new Run({ key, claim: 'c', size: SIZE, spec: { ...SPEC, env }, lease: 60, user: USER }, {
    work: dir,
  } as never);
  run.phase = 'running';
  const users = new JobUsers({ runAs: () => 'owner', isRoot: true, self: () => 'root', path: process.env['PATH'] });
  let said = '';
  let status: number | undefined;
  const shells = new Shells({
    find: () => run,
    env: { PATH: process.env['PATH'] },
    say: (message, bytes) => {
      if (message.t === 'shell-out' && message.stream === 'stdout') said += Buffer.from(bytes ?? []).toString();
      if (message.t === 'shell-over') status = message.status;
    },
    become: (user) => users.command(user),
    backlog: () => 0,
  });
  shells.take({ t: 'shell', shell: 's', key, command: 'echo "$COLOUR $PATH $LD_DEBUG"' }, Buffer.alloc(0));
  await until('its end', () => status);
  expect(readdirSync(dir)).toEqual([]);
  expect(said.split('\n')).toContain(`red ${env.PATH} files`);
});
