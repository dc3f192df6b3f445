import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { backendOf } from '../../src/backends/registry.ts';
import { LOCAL_SITE } from '../../src/config/sites.ts';
import { attemptSpec } from '../../src/gridmanager/spec.ts';
import { Attrs } from '../../src/job/attrs.ts';
import { BlobIndex } from '../../src/staging/blobs.ts';
import { AttemptSpool } from '../../src/staging/streams.ts';
import { jobs } from '../submit/support.ts';

const dir = mkdtempSync('/tmp/gry-nodes-');
afterAll(() => rmSync(dir, { recursive: true }));

async function specOf(lines: string, universe = 'grid', site = {}) {
  const description = `universe = ${universe}\ngrid_resource = batch slurm\ntransfer_executable = false\n${lines}\nqueue`;
  const [ad = {}] = jobs(description, { policy: { dryRun: true } });
  const id = { cluster: 1, proc: 0 };
  const job = { id, state: 'preparing' as const, manager: 'me', site: 'there', attempt: 1, priority: 0, since: 0 };
  const ctx = {
    record: { ...LOCAL_SITE, ...site },
    blobs: new BlobIndex(),
    spool: new AttemptSpool(join(dir, 'spool')),
  };
  return await attemptSpec(ctx, 'a.1.0.1', { ...job, attrs: new Attrs(ad) });
}
const words = async (batch: string, lines: string, site = {}) =>
  backendOf(batch)?.submitWords(await specOf(lines, 'grid', site));

const FOUR = 'machine_count = 4\nrequest_cpus = 8\nranks_per_node = 2\nrequest_memory = 2G\nrequest_gpus = 1';

describe('four nodes with eight cores, two ranks, memory and a GPU each', () => {
  it.each([
    ['slurm', ['--nodes=4', '--ntasks-per-node=2', '--cpus-per-task=4', '--mem=2048M', '--gres=gpu:1']],
    ['pbs', ['-l', 'select=4:ncpus=8:mem=2048mb:ngpus=1:mpiprocs=2:ompthreads=4', '-l', 'place=scatter']],
    ['torque', ['-l', 'nodes=4:ppn=8:gpus=1', '-l', 'mem=8192mb']],
    ['sge', ['32@=8', '-l', 'mem_free=2048M', '-l', 'gpu=1']],
    ['lsf', ['-n', '32', '-R', 'span[ptile=8]', '-R', 'rusage[mem=2048MB]', '-gpu', 'num=1']],
  ])('are asked for in the words of %s', async (batch, expected) => {
    const said = (await words(batch, FOUR)) ?? [];
    expect(said.filter((word) => !word.startsWith('--job-name='))).toEqual(expected);
  });

  it('are a parallel job of another Gryphus', async () => {
    const said = (await words('gryphus', FOUR)) ?? [];
    const asked = ['universe = parallel', 'machine_count = 4', 'ranks_per_node = 2', 'request_cpus = 8'];
    expect(said).toEqual(expect.arrayContaining(asked));
  });

  it('are a parallel job of HTCondor, whose ranks condor-node.sh gets', async () => {
    const said = (await words('condor', FOUR)) ?? [];
    const first = ['universe = parallel', 'machine_count = 4', 'ranks = 2'];
    expect(said.slice(0, 3)).toEqual(first);
    expect(said).toEqual(expect.arrayContaining(['request_cpus = 8', 'request_memory = 2048', 'request_gpus = 1']));
  });

  it.each([
    ['slurm', '--exclusive'],
    ['pbs', 'place=scatter:excl'],
    ['torque', 'x=NACCESSPOLICY:SINGLEJOB'],
    ['sge', 'exclusive=true'],
    ['lsf', '-x'],
    ['gryphus', '+WholeNodes = True'],
    ['condor', 'requirements = TARGET.Cpus == TARGET.TotalCpus'],
  ])('are whole nodes in the words of %s', async (batch, word) => {
    expect(await words(batch, `${FOUR}\nwhole_nodes = true`)).toContain(word);
  });

  it('are in the environment of the program, too', async () => {
    const expected = { GRYPHUS_NODES: '4', GRYPHUS_RANKS: '8', GRYPHUS_RANKS_PER_NODE: '2' };
    expect((await specOf(FOUR)).env).toEqual(expected);
    expect((await specOf(FOUR, 'parallel')).env).toEqual(expected);
  });
});

describe('the number of ranks', () => {
  it.each([
    ['machine_count = 3\nrequest_cpus = 4', { count: 3, ranks: 4 }, 4],
    ['node_count = 3', { count: 3, ranks: 1 }, 1],
    ['machine_count = 2\nranks_per_node = 6', { count: 2, ranks: 6 }, 6],
    ['ranks_per_node = 2\nrequest_cpus = 4', { count: 1, ranks: 2 }, 4],
    // HTCondor's blahp.
    ['+HostNumber = 2\n+NodeNumber = 8', { count: 2, ranks: 4 }, 4],
    ['+NodeNumber = 8\n+SMPGranularity = 4', { count: 2, ranks: 4 }, 4],
    ['+NodeNumber = 8', { count: 1, ranks: 8 }, 8],
    ['+HostNumber = 2\n+SMPGranularity = 2\nrequest_cpus = 8', { count: 2, ranks: 2 }, 8],
    ['request_cpus = 4', undefined, 4],
  ])('of %j', async (lines, nodes, cpus) => {
    const { resources } = await specOf(lines);
    expect([resources.nodes, resources.cpus]).toEqual([nodes, cpus]);
  });

  it.each([
    ['+NodeNumber = 7\n+HostNumber = 2', 'NodeNumber = 7 is not a multiple of machine_count = 2.'],
    ['+NodeNumber = 7\n+SMPGranularity = 2', 'NodeNumber = 7 is not a multiple of SMPGranularity = 2.'],
    ['+HostNumber = 0', 'machine_count = 0 is not a number of 1 or more.'],
    ['ranks_per_node = 3\nrequest_cpus = 4', 'The 4 cores of a node cannot be shared evenly by 3 ranks.'],
    ['ranks_per_node = 4\nrequest_cpus = 2', 'The 2 cores of a node cannot be shared evenly by 4 ranks.'],
    ['machine_count = 1000000', 'machine_count = 1000000 is more than any site has.'],
  ])('cannot be that of %j', async (lines, message) => {
    await expect(specOf(lines)).rejects.toMatchObject({ code: 'bad-input', message });
  });
});

describe('Grid Engine', () => {
  it("gets slots of one host, or the parallel environment in the site's file", async () => {
    expect((await words('sge', 'ranks_per_node = 4'))?.[0]).toBe('4');
    const site = { parallelEnvironment: 'mpi' };
    expect((await words('sge', 'machine_count = 2\nrequest_cpus = 2', site))?.[0]).toBe('4@mpi');
    expect((await words('sge', 'request_cpus = 2', site))?.[0]).toBe('2');
  });
});
