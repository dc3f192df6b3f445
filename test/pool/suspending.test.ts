import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { processesOf } from '../../src/pool/host/processes.ts';
import type { FromWorker } from '../../src/pool/wire/wire.ts';
import { Cgroups } from '../../src/pool/worker/cgroups.ts';
import { Containers } from '../../src/pool/worker/containers.ts';
import { Startd } from '../../src/pool/worker/startd.ts';
import { until } from '../agent/agent.ts';
import { ticksOf } from './owner/ticks.ts';
import { SCRIPTS } from './scripts.ts';

const SIZE = { cpus: 4, memoryMb: 4000, diskKb: 1e6, gpus: 0 };
const KEY: AttemptKey = 'still.1.0.1';
const name = `gryphus-suspending-${process.pid}`;
const groups = Cgroups.open({ policy: 'always', name, limitMemory: false });
/** Loops that do nothing but start processes: one that is started while they are stopped, and goes on, is soon gone. */
const FORKS = 'f() { while :; do sleep 0.3 & done; }\nf & echo x >forking; f';

describe.each([
  ['by signals', undefined],
  ['by the freezer', groups],
] as const)('a job that is suspended %s', (_, way) => {
  let dir = '';
  let startd: Startd | undefined;
  afterEach(() => {
    startd?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  function open(program: string): { readonly startd: Startd; readonly said: FromWorker[] } {
    dir = mkdtempSync(join(tmpdir(), 'suspending-'));
    const said: FromWorker[] = [];
    const opened = new Startd({
      dir,
      machine: { size: SIZE, ad: { Requirements: 'true' }, limitMemory: false },
      env: { PATH: process.env['PATH'] },
      scripts: SCRIPTS,
      sharesHome: true,
      ...(way ? { groups: way } : {}),
      containers: new Containers({ dir, env: {}, environment: {}, log: () => undefined }),
      pull: () => () => Promise.reject(new Error('nothing is to be fetched')),
      proxyOf: (proxy) => join(dir, proxy),
      say: (message) => said.push(message),
      log: () => undefined,
    });
    startd = opened;
    opened.take({ t: 'kind', id: 'k', ad: { Requirements: 'true' } });
    const spec = {
      executable: { kind: 'there', path: '/bin/sh' },
      args: ['-c', program],
      env: {},
      inputs: [],
      joinStderr: false,
      shared: { cwd: dir, executable: '/bin/sh' },
      vacateSeconds: 1,
    } as const;
    const size = { cpus: 1, memoryMb: 500, diskKb: 0, gpus: 0 };
    opened.take({ t: 'start', key: KEY, claim: 'c', kind: 'k', size, spec, lease: 600 });
    return { startd: opened, said };
  }

  const there = (path: string) => until(path, () => existsSync(join(dir, path)) || undefined);
  const ended = (said: readonly FromWorker[]) =>
    until('its end', () => {
      const message = said.find(({ t }) => t === 'ended');
      return message?.t === 'ended' ? message.ending.how : undefined;
    });
  const vacate = (one: Startd) => one.take({ t: 'cancel', key: KEY, how: 'vacate', message: 'go', by: 'owner' });

  it('stands still to the last process, though it starts others all the time', async () => {
    const { startd: one, said } = open(FORKS);
    await there('forking');
    for (let turn = 0; turn < 3; turn++) {
      one.take({ t: 'suspend', key: KEY });
      await delay(50);
      const before = { ticks: ticksOf(KEY), pids: processesOf(new Set([KEY])).map(({ pid }) => pid) };
      await delay(500);
      expect({ ticks: ticksOf(KEY), pids: processesOf(new Set([KEY])).map(({ pid }) => pid) }).toEqual(before);
      one.take({ t: 'resume', key: KEY });
      await until('it to go on', () => ticksOf(KEY) > before.ticks || undefined);
    }
    one.take({ t: 'suspend', key: KEY });
    vacate(one);
    expect(await ended(said)).toMatchObject({ cause: 'preempted', by: 'owner' });
    await until('none to be left', () => processesOf(new Set([KEY])).length === 0 || undefined);
  });

  it('has stopped itself: it is vacated all the same, and killed if it ignores SIGTERM', async () => {
    const stops = open('echo x >running; kill -STOP $$; while :; do sleep 0.1; done');
    await there('running');
    stops.startd.take({ t: 'suspend', key: KEY });
    stops.startd.take({ t: 'resume', key: KEY });
    vacate(stops.startd);
    expect(await ended(stops.said)).toMatchObject({ cause: 'preempted', yielded: true });
    stops.startd.close();
    rmSync(dir, { recursive: true, force: true });

    const ignores = open("trap '' TERM; echo x >running; kill -STOP $$; while :; do sleep 0.1; done");
    await there('running');
    vacate(ignores.startd);
    const how = await ended(ignores.said);
    expect(how).toMatchObject({ cause: 'preempted' });
    expect(how).not.toHaveProperty('yielded');
  });
});
