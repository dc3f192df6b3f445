import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FlockKey } from '../../src/config/agreements.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { freePort } from '../sites/ports.ts';
import { LIES, LyingPartner } from './lying-partner.ts';

const WAIT_MS = 240_000;
const lies = [...Object.keys(LIES).filter((lie) => lie !== 'endless'), 'endless', 'above'];

let agent: TestAgent;
let partner: LyingPartner | undefined;

beforeAll(async () => {
  agent = new TestAgent();
  const port = await freePort();
  agent.config(`[flock]\nlisten = "127.0.0.1:${port}"\n[pool]\ncpus = 2\n`);
  await agent.ok('flock', 'add', 'liar', '--to', '--new-key', 'liar.key');
  await agent.ok('up');
  const key = JSON.parse(agent.read('liar.key')) as FlockKey;
  partner = new LyingPartner(port, key);
  await until(
    'the partner to offer its machine',
    async () => /offered on 1/.test(await agent.ok('flock', 'show', 'liar')) || undefined,
  );
}, 300_000);

afterAll(async () => {
  partner?.close();
  await agent.end();
}, 120_000);

it('jobs whose results a partner falsifies run elsewhere, nothing is written outside, and the partner is benched and named', async () => {
  agent.file('job.sh', '#!/bin/sh\nprintf "honest %s" "$1" >out.txt\n', 0o755);
  const lines = [
    'executable = job.sh',
    'arguments = $(lie)',
    // First at the partner, and wherever there is a place after that.
    'requirements = FlockPool =?= "liar" || (MY.NumJobStarts ?: 0) > 0',
    'transfer_output_files = out.txt',
    'transfer_output_remaps = "out.txt=out.$(lie)"',
    'log = job.log',
    `queue lie in (${lies.join(' ')})`,
  ];
  agent.file('job.sub', `${lines.join('\n')}\n`);
  await agent.ok('submit', 'job.sub');
  await until(
    'the jobs to end',
    () => agent.read('job.log').split('\n005 (').length > lies.length || undefined,
    WAIT_MS,
  );
  const truth = createHash('sha256').update(Buffer.alloc(3e6, 'x')).digest('hex');
  for (const lie of lies) {
    const came = readFileSync(join(agent.work, `out.${lie}`));
    // What has the announced digest is what a worker says that it is.
    const isAsAnnounced = ['endless', 'above', 'unasked'].includes(lie);
    if (isAsAnnounced) expect([lie, createHash('sha256').update(came).digest('hex')]).toEqual([lie, truth]);
    else expect(came.toString()).toBe(`honest ${lie}`);
  }
  const shown = await until('flock show to name it', async () => {
    const now = await agent.ok('flock', 'show', 'liar');
    return /our jobs there: not now \(benched\): results are not what it announced/.test(now) ? now : undefined;
  });
  expect(shown).toMatch(/sent (a different 'out.txt'|less of work\/out.txt|more of work\/out.txt) than it announced/);
  expect(shown).toMatch(/names a result that leaves its directory/);
  const anywhere = [agent.dir, agent.work, join(agent.home, 'state'), '/tmp'].flatMap((dir) => readdirSync(dir));
  expect(anywhere.filter((name) => name === 'escaped')).toEqual([]);
  expect(existsSync('/tmp/escaped')).toBe(false);
  // An endless answer is cut off after what fits into the buffers of a connection.
  expect(partner?.poured).toBeLessThan(1e9);
}, 300_000);
