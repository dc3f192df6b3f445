import { StagingLinks } from '../../src/pool/central-manager/staging-links.ts';
import { NO_SHELLS } from './no-shells.ts';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { type FromClient, readFromClient, type ToClient } from '../../src/pool/wire/client-wire.ts';
import { CentralManager } from '../../src/pool/central-manager/central-manager.ts';
import { CentralManagerClients } from '../../src/pool/central-manager/client-connections.ts';
import { recover } from '../../src/pool/central-manager/central-manager-journal.ts';
import { CentralManagerShells } from '../../src/pool/central-manager/central-manager-shells.ts';
import { CentralManagerWorkers } from '../../src/pool/central-manager/worker-connections.ts';
import { Journal } from '../../src/pool/host/journal.ts';
import { Channel } from '../../src/pool/wire/frames.ts';
import { mapTasks } from '../../src/pool/map.ts';
import type { MapOptions, PoolTask } from '../../src/pool/map-types.ts';
import type { FromCentralManager } from '../../src/pool/wire/wire.ts';
import { JUST_TRUE } from './just-true.ts';

const optionsOf = (dir: string): MapOptions<string> => ({
  socket: join(dir, 'central-manager'),
  journal: join(dir, 'journal'),
  onAgain: () => undefined,
  cwd: dir,
  spoolDir: dir,
  owner: 'me',
  spec: JUST_TRUE,
  ad: {},
  size: SIZE,
  retries: 0,
});

const SIZE = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };

describe('what a map has done with', () => {
  const dirs: string[] = [];
  afterEach(() => {
    vi.useRealTimers();
    for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true });
  });

  it('is named again to the next central manager when the one that was told went away', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'gryphus-'));
    dirs.push(dir);
    const forgets: (readonly AttemptKey[])[] = [];
    const server = createServer((socket) => {
      const channel = new Channel<FromClient, ToClient>(socket, readFromClient);
      channel.open(
        (message) => {
          if (message.t === 'tasks') endAll(channel, message.tasks);
          if (message.t !== 'forget') return;
          forgets.push(message.keys);
          if (forgets.length === 1) socket.destroy();
          else channel.send({ t: 'done', id: message.id, outcomes: message.keys.map((key) => [key, { ok: true }]) });
        },
        () => undefined,
      );
    });
    const socket = join(dir, 'central-manager');
    await new Promise<void>((ready) => server.listen(socket, ready));
    const done: string[] = [];
    const tasks = async function* (): AsyncGenerator<PoolTask<string>> {
      yield { args: [], of: 'one', inputs: [], outputs: [] };
      await vi.waitFor(() => expect(forgets).toHaveLength(2), { timeout: 20_000 });
    };
    const options = optionsOf(dir);
    for await (const { of } of mapTasks(tasks(), options)) done.push(of);
    await new Promise((closed) => server.close(closed));
    expect(done).toEqual(['one']);
    expect(forgets[1]).toEqual(forgets[0]);
  });

  it('is fetched and placed once when its end is reported twice', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'gryphus-'));
    dirs.push(dir);
    let fetches = 0;
    const server = createServer((socket) => {
      const channel = new Channel<FromClient, ToClient>(socket, readFromClient);
      channel.open(
        (message) => {
          if (message.t === 'tasks')
            for (const [key] of [...message.tasks, ...message.tasks])
              channel.send({ t: 'result', key, ending: { how: { kind: 'exited', code: 0 } } });
          if (message.t === 'forget')
            channel.send({ t: 'done', id: message.id, outcomes: message.keys.map((key) => [key, { ok: true }]) });
          if (message.t !== 'fetch') return;
          fetches++;
          const path = join(message.request.into, 'made');
          writeFileSync(path, 'it');
          const file = { name: 'made', kind: 'output', path, bytes: 2, executable: false } as const;
          channel.send({ t: 'fetched', id: message.id, outcome: { ok: true, files: [file] } });
        },
        () => undefined,
      );
    });
    const socket = join(dir, 'central-manager');
    await new Promise<void>((ready) => server.listen(socket, ready));
    const tasks = async function* (): AsyncGenerator<PoolTask<string>> {
      yield { args: [], of: 'one', inputs: [], outputs: ['made'] };
    };
    const options = optionsOf(dir);
    for await (const { problem } of mapTasks(tasks(), options)) expect(problem).toBe(undefined);
    await new Promise((closed) => server.close(closed));
    expect(fetches).toBe(1);
    expect(readFileSync(join(dir, 'made'), 'utf8')).toBe('it');
  });

  it.each([
    ['runs again under another key, and is named', false],
    ['is not started again if no more are wanted, and has failed', true],
  ])('is unknown when the pool has lost its journal: it %s', async (_, enough) => {
    const dir = mkdtempSync(join(tmpdir(), 'gryphus-'));
    dirs.push(dir);
    const options = optionsOf(dir);
    const begin = () => new Journal(options.journal, () => undefined).close();
    const named: AttemptKey[] = [];
    const stop = new AbortController();
    const server = createServer((socket) => {
      const channel = new Channel<FromClient, ToClient>(socket, readFromClient);
      channel.open(
        (message) => {
          if (message.t === 'cancel') socket.destroy();
          if (message.t === 'forget')
            channel.send({ t: 'done', id: message.id, outcomes: message.keys.map((key) => [key, { ok: true }]) });
          if (message.t !== 'tasks') return;
          for (const [key] of message.tasks) named.push(key);
          if (named.length < 3) {
            // The second one has the task, and is restarted once more.
            if (named.length === 1) rmSync(options.journal);
            begin();
            if (enough) stop.abort();
            else socket.destroy();
          } else endAll(channel, message.tasks);
        },
        () => undefined,
      );
    });
    begin();
    await new Promise<void>((ready) => server.listen(options.socket, ready));
    const again: string[] = [];
    const tasks = async function* (): AsyncGenerator<PoolTask<string>> {
      yield { args: [], of: 'one', inputs: [], outputs: [] };
    };
    const onAgain: MapOptions<string>['onAgain'] = (some) => again.push(...some.map(({ of }) => of));
    const results = [];
    for await (const { of, ending } of mapTasks(tasks(), { ...options, onAgain, enough: stop.signal }))
      results.push(`${of} ${ending.how.kind}`);
    await new Promise((closed) => server.close(closed));
    expect(again).toEqual(['one']);
    expect(results).toEqual([enough ? 'one by-site' : 'one exited']);
    // The third time the journal is the same, and so is the key.
    expect(named.map((key) => key.split('.').at(-1))).toEqual(enough ? ['1'] : ['1', '2', '2']);
  });

  it('is dropped at its worker when its client never connects to a new central manager', async () => {
    vi.useFakeTimers();
    const told: [string, FromCentralManager][] = [];
    const journal = { add: () => undefined, whenSaved: (call: () => void) => call() };
    const centralManager = new CentralManager(
      {
        journal,
        toWorker: (worker, message) => told.push([worker, message]),
        toClient: () => undefined,
        now: () => 0,
        clock: () => 0,
        log: () => undefined,
      },
      recover([{ r: 'g', key: 'map-gone.0.0.1', worker: 'w', boot: 'b', claim: 'c', token: 't', client: 'map-gone' }]),
    );
    const workers = new CentralManagerWorkers({
      agent: 'a',
      centralManager,
      tokens: { find: () => undefined, bind: () => true },
      specOf: () => undefined,
      proxies: { sign: () => '' },
      staging: new StagingLinks(),
      lease: 2400,
      onHome: async () => ({ result: -1 }),
      onChunk: () => undefined,
      onFiles: () => undefined,
      shells: NO_SHELLS,
      log: () => undefined,
    });
    const shells = new CentralManagerShells({ centralManager, toWorker: () => undefined, isHere: () => false });
    const clients = new CentralManagerClients({ centralManager, workers, shells, log: () => undefined });
    await vi.advanceTimersByTimeAsync(59_000);
    expect(told).toEqual([]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(told).toEqual([['w', { t: 'forget', keys: ['map-gone.0.0.1'] }]]);
    expect(centralManager.unnamed()).toEqual([]);
    clients.close();
  });
});

/** Each task has ended well. */
function endAll(channel: Channel<FromClient, ToClient>, tasks: Extract<FromClient, { t: 'tasks' }>['tasks']): void {
  for (const [key] of tasks)
    channel.send({
      t: 'result',
      key,
      ending: { how: { kind: 'exited', code: 0 } },
      inline: { stdout: 0, stderr: 0 },
    });
}
