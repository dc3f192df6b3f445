import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { CAN_MOUNT, type SmallDisk, smallDisk } from './small-disk.ts';

describe.runIf(CAN_MOUNT)("the full disk of this machine's worker", () => {
  let agent: TestAgent;
  let disk: SmallDisk;
  beforeEach(() => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n[gridmanager]\nretry_max = "1s"\n');
    mkdirSync(join(agent.home, 'state/pool'), { recursive: true, mode: 0o700 });
    disk = smallDisk(join(agent.home, 'state/pool/worker'), 8192);
    agent.file('ledger', '');
  });
  afterEach(async () => {
    await agent.run(['down']);
    killMatching('worker.mjs', agent);
    disk.unmount();
    await agent.end();
  });

  const submit = (script: string, more = '') =>
    agent.submit(
      `executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = YES\nrequest_disk = 100\narguments = "-c 'echo $(Process) >>${agent.work}/ledger; ${script}'"\noutput = out.$(Cluster)\n${more}\nqueue\n`,
    );
  const ledger = () => agent.read('ledger').trim().split('\n').sort();
  const wait = (cluster: number) => agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));
  const why = async (cluster: number, words: RegExp) => {
    let said = '';
    await until(`why ${cluster} waits: ${String(words)}`, async () => {
      said = (await agent.run(['why', String(cluster)])).stdout;
      return words.test(said) || undefined;
    }).catch((thrown: unknown) => {
      throw new Error(said, { cause: thrown });
    });
  };
  const slotDisk = async () => Number(await agent.ok('status', '--pool', '-c', 'PartitionableSlot', '-af', 'Disk'));

  it('keeps jobs waiting, with the reason, and each runs once when there is space', async () => {
    await agent.ok('up');
    const first = await submit('cat /dev/zero >fat 2>/dev/null; exit 5', 'transfer_output_files = ""');
    await wait(first);
    expect((await agent.ads(first))[0]).toMatchObject({ JobStatus: 4, ExitCode: 5, NumJobStarts: 1 });
    await until('room again', async () => (await slotDisk()) > 6000 || undefined);

    disk.fill();
    await until('its ad to say so', async () => (await slotDisk()) < 1024 || undefined);
    const waiting = await submit('echo done');
    await why(waiting, /1 worker: its disk is full/);
    const map = agent.run(['map', `echo map {} >>${agent.work}/ledger`, ':::', '1', '2', '3']);
    expect(ledger()).toEqual(['0']);
    disk.free();
    await wait(waiting);
    expect(await map).toMatchObject({ code: 0 });
    expect(agent.read(`out.${waiting}`)).toBe('done\n');
    expect(ledger()).toEqual(['0', '0', 'map 1', 'map 2', 'map 3']);
    expect((await agent.ads(waiting))[0]).toMatchObject({ ExitCode: 0, NumJobStarts: 1 });
  }, 240_000);

  it('loses nothing of what ends on it while the worker is dead, and says why there is no worker', async () => {
    await agent.ok('up');
    const go = join(agent.work, 'go');
    const job = await submit(`while [ ! -e ${go} ]; do sleep 0.1; done; echo end; exit 3`);
    const map = agent.run([
      'map',
      `echo map {} >>${agent.work}/ledger; while [ ! -e ${go} ]; do sleep 0.1; done`,
      ':::',
      '1',
    ]);
    await until('both to run', () => ledger().length === 2 || undefined);
    disk.fill();
    killMatching('worker.mjs', agent);
    writeFileSync(go, '');
    const next = await submit('echo next');
    await why(next, /This machine's worker cannot start: no space left in .*worker/);
    disk.free();
    for (const cluster of [job, next]) await wait(cluster);
    expect(await map).toMatchObject({ code: 0 });
    expect(ledger()).toEqual(['0', '0', 'map 1']);
    expect((await agent.ads(job))[0]).toMatchObject({ ExitCode: 3, NumJobStarts: 1 });
    expect(agent.read(`out.${next}`)).toBe('next\n');
  }, 240_000);
});
