import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPaths } from '../../src/config/paths.ts';
import { poolPlaces } from '../../src/pool/host/places.ts';
import { Tokens } from '../../src/pool/wire/tokens.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { SLOW } from '../slow.ts';

const WORKER = join(import.meta.dirname, '../..', process.env['GRYPHUS_DIST'] ?? 'dist', 'worker.mjs');
/** The slow node's relay on its reverse connection: a megabyte takes longer than three pings. */
const BYTES_A_SECOND = 24_000;
const LATENCY_MS = 1000;

describe.skipIf(!SLOW)('a slow node, beside another', () => {
  let agent: TestAgent;
  let relay: Server;
  const workers: ChildProcess[] = [];
  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\nlocal_worker = false\n[gridmanager]\nretry_max = "1s"\n');
    agent.file('ledger', '');
    await agent.ok('up');
    // The pool runs while it is in use.
    await agent.submit('executable = /bin/true\nrequirements = false\nqueue\n');
    const places = poolPlaces(loadPaths({ GRYPHUS_HOME: agent.home }));
    await until('the central manager', async () => (await agent.run(['status', '--pool'])).code === 0 || undefined);
    relay = await slowRelay(join(agent.dir, 'slow.sock'), places.workerSocket);
    const tokens = new Tokens(places.dir);
    for (const [site, socket] of [
      ['slow', join(agent.dir, 'slow.sock')],
      ['quick', places.workerSocket],
    ] as const) {
      const token = tokens.issue({ site, local: false });
      const dir = join(agent.dir, site);
      mkdirSync(dir, { mode: 0o700 });
      const config = {
        token: token.id,
        secret: token.secret,
        name: site,
        site,
        dir,
        socket,
        cpus: 2,
        diskKb: 10_000_000,
        runAs: 'root',
      };
      writeFileSync(join(dir, 'config'), JSON.stringify(config), { mode: 0o600 });
      workers.push(spawn(process.execPath, [WORKER, join(dir, 'config')], { env: agent.env, stdio: 'ignore' }));
    }
    await until(
      'both',
      async () => (await agent.ok('status', '--pool', '-af', 'GryphusSite')).split('\n').length > 2 || undefined,
    );
  }, 180_000);
  afterAll(async () => {
    for (const worker of workers) worker.kill('SIGKILL');
    relay?.close();
    await agent.end();
  });

  const submit = (name: string, site: string | undefined, count: number, more = '') =>
    agent.submit(
      `executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = YES\nrequest_disk = 100\nrequest_memory = 10
arguments = "-c 'echo ${name} $(Process) >>${agent.work}/ledger; sleep 0.2; wc -c <big 2>/dev/null || :'"
output = ${name}.$(Process)\n${more}\n${site === undefined ? '' : `requirements = TARGET.GryphusSite == "${site}"\n`}queue ${count}\n`,
    );
  const ledger = (name: string) =>
    agent
      .read('ledger')
      .split('\n')
      .filter((line) => line.startsWith(`${name} `))
      .sort();
  const each = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`).sort();
  const signal = (name: NodeJS.Signals) => workers[0]?.kill(name);

  it('keeps its claims and its connection while it crawls, and its job counts once', async () => {
    writeFileSync(join(agent.work, 'big'), Buffer.alloc(1_200_000, 1));
    const duty = { on: true };
    const crawling = (async () => {
      while (duty.on) {
        signal('SIGSTOP');
        await sleep(700);
        signal('SIGCONT');
        await sleep(300);
      }
    })();
    try {
      const slow = await submit('crawls', 'slow', 1, 'transfer_input_files = big');
      const others = await submit('others', 'quick', 12);
      await agent.ok('wait', '--no-outcome', '--timeout', '60', String(others));
      expect(ledger('others')).toEqual(each('others', 12));
      await agent.ok('wait', '--no-outcome', '--timeout', '180', String(slow));
      expect(ledger('crawls')).toEqual(each('crawls', 1));
      expect(agent.read('crawls.0').trim()).toBe('1200000');
      expect((await agent.ads(slow))[0]).toMatchObject({ ExitCode: 0, NumJobStarts: 1 });
      expect(agent.log('pool.log')).not.toContain('a worker disconnected');
    } finally {
      duty.on = false;
      await crawling;
    }
  }, 300_000);

  it('that says nothing is shown as such, and given nothing more, until it is heard again', async () => {
    const state = () =>
      agent.ok('status', '--pool', '-c', 'GryphusSite == "slow" && PartitionableSlot', '-af', 'State');
    await until('it to be there', async () => (await state()).trim() === 'Unclaimed' || undefined);
    signal('SIGSTOP');
    await until('it to be seen', async () => (await state()).trim() === 'Unknown' || undefined, 45_000);
    const waits = await submit('waits', 'slow', 1);
    const others = await submit('rest', undefined, 6);
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(others));
    expect(ledger('rest')).toEqual(each('rest', 6));
    expect((await agent.run(['why', String(waits)])).stdout).toContain('1 worker: silent for a while');
    signal('SIGCONT');
    await agent.ok('wait', '--no-outcome', '--timeout', '90', String(waits));
    expect(ledger('waits')).toEqual(each('waits', 1));
  }, 240_000);
});

/** Forwards this many bytes a second, with a delay for each. */
async function slowRelay(path: string, to: string): Promise<Server> {
  const server = createServer((socket) => {
    const there = connect(to);
    crawl(socket, there);
    crawl(there, socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return server;
}

function crawl(from: Socket, to: Socket): void {
  let free = 0;
  from.on('error', () => to.destroy());
  from.on('close', () => to.destroy());
  from.on('data', (data: Buffer) => {
    for (let at = 0; at < data.length; at += 4096) {
      const piece = data.subarray(at, at + 4096);
      free = Math.max(free, performance.now()) + (piece.length / BYTES_A_SECOND) * 1000;
      setTimeout(() => to.write(piece), free + LATENCY_MS - performance.now());
    }
  });
}
