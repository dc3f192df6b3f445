import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { openJobManagerSite } from '../../src/jobmanager/client.ts';
import type { Channel } from '../../src/transport/contract.ts';
import { LocalTransport } from '../../src/transport/local.ts';

const dir = mkdtempSync('/tmp/grs-');
const transport = new LocalTransport();
/** What was asked at the site. */
const asked: string[] = [];
let isDown = false;
let last: Channel | undefined;
const counting = Object.assign(Object.create(transport) as LocalTransport, {
  open: async (command: string) => {
    if (isDown) throw new GryphusError('site-unreachable', 'It is down.');
    const channel = await transport.open(command);
    last = channel;
    const write = channel.stdin.write.bind(channel.stdin);
    channel.stdin.write = (bytes: Uint8Array | string) => {
      const [, verb, , queue] = String(bytes).split(' ');
      asked.push(`${verb} ${queue}`);
      return write(bytes);
    };
    return channel;
  },
});
const site = openJobManagerSite({
  name: 'here',
  agentId: 'agent12345',
  transport: counting,
  backend: 'fork',
  options: { scratch: join(dir, 'scratch'), lookMin: 500, lookMax: 500 },
});
let cursor: string | undefined;

beforeAll(async () => {
  for (let i = 0; i < 3; i++) ({ cursor } = await site.poll({ cursor, follow: [] }));
});
afterAll(async () => {
  await site.close();
  await transport.close();
  rmSync(dir, { recursive: true, force: true });
});

/** How often the queue there was looked at in a poll of four seconds in which nothing happens. */
async function looks(restMs: number): Promise<number> {
  const before = asked.length;
  ({ cursor } = await site.poll({ cursor, follow: [], waitMs: 4000, restMs }));
  return asked.slice(before).filter((what) => what === 'poll 1').length;
}

it('a site at which nothing happens is looked at more and more rarely if there is no hurry, at its own pace otherwise', async () => {
  const usual = await looks(0);
  expect(usual).toBeGreaterThan(3);
  for (let i = 0; i < 2; i++) await looks(60_000);
  expect(await looks(60_000)).toBeLessThan(2);
});

it('is asked only about its queue by polls that wait for news', async () => {
  await looks(60_000);
  const before = asked.length;
  for (let i = 0; i < 3; i++) ({ cursor } = await site.poll({ cursor, follow: [], waitMs: 5500, restMs: 60_000 }));
  // Looks at the queue may have been due.
  expect(asked.slice(before).filter((what) => what === 'poll 0')).toEqual([]);
  // Who cannot wait gets what is there now.
  const quick = asked.length;
  ({ cursor } = await site.poll({ cursor, follow: [], restMs: 60_000 }));
  expect(asked.length).toBe(quick + 1);
});

it('is not said to answer if the last exchange did not reach it', async () => {
  // Then its queue is not due for longer than the polls wait.
  ({ cursor } = await site.poll({ cursor: undefined, follow: [], restMs: 60_000 }));
  isDown = true;
  last?.kill();
  await expect(site.audit()).rejects.toMatchObject({ code: 'site-unreachable' });
  const poll = () => site.poll({ cursor, follow: [], waitMs: 5500, restMs: 60_000 });
  for (let i = 0; i < 2; i++) await expect(poll()).rejects.toMatchObject({ code: 'site-unreachable' });
  isDown = false;
  ({ cursor } = await poll());
});

it('but what ends there is heard at once', async () => {
  await looks(60_000);
  const key: AttemptKey = 'agent12345.1.0.1';
  const spec = {
    key,
    title: 'job',
    executable: { kind: 'there', path: '/bin/true' },
    args: [],
    env: {},
    inputs: [],
    joinStderr: true,
    resources: { cpus: 1, memoryMb: undefined, diskKb: undefined, gpus: undefined, walltimeSeconds: undefined },
    batch: { extraArgs: [] },
  } as const;
  await site.prepare([spec]);
  await site.commit([key]);
  const began = performance.now();
  for (let ended = false; !ended; ) {
    const answer = await site.poll({ cursor, follow: [], waitMs: 60_000, restMs: 60_000 });
    cursor = answer.cursor;
    ended = answer.reports.some((report) => report.is === 'ended');
  }
  expect(performance.now() - began).toBeLessThan(20_000);
});
