import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readPid } from '../../src/util/pid-file.ts';
import { type Sge, skipWithoutSge } from '../sites/sge.ts';
import { arrayTests } from './arrays.ts';
import { batchFaults } from './batch-faults.ts';
import { type BatchGround, sshSge } from './batch-grounds.ts';
import { freshKey, ledgerJob, run, shellJob, Watch } from './kit.ts';
import { nodesTests } from './nodes.ts';
import { OF_ITS_COMMANDS, testSite } from './suite.ts';

const faults = batchFaults({
  submit: 'qsub',
  query: 'qstat',
  remove: 'qdel',
  down: {
    message:
      'error: commlib error: got select error (Connection refused)\nUnable to run job: unable to send message to qmaster using port 26844 on host "localhost": got send error\nExiting.',
    status: 1,
  },
  held: ['-h'],
  noQueue: /unknown queue.*Queues there: /,
  clock: true,
  stuck: ({ dir = '' }) => {
    const execd = readPid(join(dir, 'default/spool/execd/localhost/execd.pid')) ?? 0;
    process.kill(execd, 'SIGSTOP');
    return () => process.kill(execd, 'SIGCONT');
  },
});
const arrays = arrayTests<BatchGround<Sge>>({
  submit: 'qsub',
  isArray: "*' -t '*",
  refuses: { message: 'Unable to run job: array jobs are not allowed here.\nExiting.', status: 1 },
  env: (ground) => ground.batch.env,
  remove: (ground, id) => ground.batch.run('qdel', id),
});
/** The reason comes from a second query, in another format than the listing. */
const reasons = (ground: () => BatchGround<Sge>): void =>
  it('says why a job waits', async () => {
    const site = await ground().open();
    const key = freshKey();
    await run(site, [ledgerJob(ground(), key, 'exit 0', { batch: { extraArgs: ['-l', 'mem_free=999999G'] } })]);
    const waits = await new Watch(site).until(key, (r) => 'why' in r && /offers|cannot run/.test(r.why ?? ''), 60_000);
    expect(waits.is).toBe('queued');
    expect((await site.cancel([key])).get(key)).toEqual({ ok: true });
    await site.close();
  }, 90_000);
/** Its code for the end is that of the time limit. */
const memory = (ground: () => BatchGround<Sge>): void =>
  it('knows a memory limit from a time limit', async () => {
    const site = await ground().open();
    const key = freshKey();
    // The execution daemon measures all processes of the job together; each by itself stays below.
    const hogs = 'for i in 1 2 3 4 5 6; do perl -e \'$x = "x" x 4e7; sleep 300\' & done; wait';
    await run(site, [ledgerJob(ground(), key, hogs, { batch: { extraArgs: ['-l', 'h_vmem=200M,h_rt=600'] } })]);
    expect((await new Watch(site).ended(key, 150_000)).how).toMatchObject({
      kind: 'by-site',
      cause: 'out-of-memory',
      message: expect.stringMatching(/limited to h_vmem=200M/),
    });
    await site.forget([key]);
    await site.close();
  }, 180_000);
const several = (ground: () => BatchGround<Sge>): void => {
  nodesTests({
    listing: `cut -d ' ' -f 1,2 "$PE_HOSTFILE"; echo "$NSLOTS slots"`,
    lines: ['4 slots', 'localhost 4'],
    batch: { parallelEnvironment: 'mpi' },
    tooMany: /offers|cannot run/,
    ground,
  });
  it("takes the parallel environment that gives each node the job's slots, or says that there is none", async () => {
    const site = await ground().open();
    const resources = { memoryMb: undefined, diskKb: undefined, gpus: undefined, walltimeSeconds: undefined };
    const [two, three] = [2, 3].map((cpus) =>
      shellJob(freshKey(), 'exit 0', { resources: { ...resources, cpus, nodes: { count: 2, ranks: 1 } } }),
    );
    if (two === undefined || three === undefined) throw new Error('two jobs');
    await run(site, [two]);
    expect(ground().batch.run('qstat', '-r')).toMatch(/Requested PE: +by-two 4\n/);
    await site.prepare([three]);
    expect((await site.commit([three.key])).get(three.key)).toMatchObject({
      refusal: { kind: 'never', message: expect.stringMatching(/no parallel environment .* allocation_rule 3 /) },
    });
    await site.cancel([two.key, three.key]);
    await site.close();
  }, 60_000);
};
testSite({
  name: 'Grid Engine over ssh',
  makeSite: sshSge,
  skip: skipWithoutSge(),
  ordinary: OF_ITS_COMMANDS,
  more: (ground) => [faults, arrays, reasons, memory, several].forEach((tests) => tests(ground)),
});
