import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { skipWithoutSlurmdbd } from '../sites/slurmdbd.ts';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { call, type Said } from './said.ts';

/** The array is last: its tasks have numbers in Slurm that would come between those of the others. */
const JOBS = `sbatch -J good -t 5 -o /dev/null --mem=64 --wrap 'exit 0'
sbatch -J bad -t 5 -o /dev/null --mem=64 --wrap 'exit 3'
sbatch -J killed -t 5 -o /dev/null --mem=64 --wrap 'kill -9 $$'
sbatch -J ended -t 5 -o /dev/null --mem=64 --wrap 'kill -15 $$'
sbatch -J held -H -t 5 -o /dev/null --mem=64 --wrap true
sbatch -J runs -t 1-0 -o /dev/null --mem=64 -c 2 --wrap 'sleep 1000'
sbatch -J late -t 1 -o /dev/null --mem=64 --wrap 'sleep 1000'
sbatch -J never -t 5 -d afterok:2 -o /dev/null --mem=64 --wrap true
sbatch -J cut -t 5 -o /dev/null --mem=64 --wrap 'sleep 1000'
sbatch -J heldcut -H -t 5 -o /dev/null --mem=64 --wrap true
sbatch -J arr -t 5 -a 1-3 -o /dev/null --mem=64 --wrap 'exit $SLURM_ARRAY_TASK_ID'
`;

/** Fields that say the same of both; the others name the place, or times that differ. */
const SAME =
  'JobID,JobName,State,ExitCode,DerivedExitCode,AllocCPUS,NCPUS,ReqCPUS,ReqMem,ReqTRES,NNodes,ReqNodes,AllocNodes,NTasks,Timelimit,TimelimitRaw,User,UID,GID,Group,Suspended,MaxVMSize,MaxDiskRead,AveCPU,Layout,ReqCPUFreq,ConsumedEnergy,Reservation,Container,WorkDir';

const ARRAY = /^11_/;
/** Steps that were stopped: the real one says CANCELLED 0:15 of them, or FAILED 15:0, as it happens. */
const STOPPED = /^[679]\.batch/;

describe.skipIf(!SLOW || skipWithoutSlurm() || skipWithoutSlurmdbd())(
  'sacct, beside the real one over slurmdbd',
  { timeout: 300_000 },
  () => {
    let agent: TestAgent;
    let slurm: Slurm;
    beforeAll(async () => {
      slurm = await startSlurm({ nodes: 1, cpus: 8, accounting: true });
      agent = new TestAgent();
      agent.config('[pool]\ncpus = 8\nmemory = "4G"\n[scheduler]\nperiodic_interval = "1s"\n');
      await agent.ok('compat', 'install', join(agent.dir, 'bin'));
      for (const speak of [real, ours]) {
        await done(speak('sh', '-c', JOBS));
        await until(
          'what runs',
          async () => (await states(speak, 'runs,late,cut')).join() === 'RUNNING,RUNNING,RUNNING' || undefined,
        );
        await done(speak('scancel', '6', '9', '10'));
      }
      for (const speak of [real, ours])
        await until(
          'all ends',
          async () =>
            (await states(speak, 'runs,late,cut,ended,arr')).every(
              (state) => !/RUNNING|PENDING|COMPLETING/.test(state),
            ) || undefined,
          300_000,
        );
    }, 600_000);
    afterAll(async () => {
      await agent?.end();
      await slurm?.stop();
    });

    const real = (command: string, ...args: string[]) => call(agent, slurm.env, command, args);
    const ours = (command: string, ...args: string[]) =>
      call(agent, { PATH: `${join(agent.dir, 'bin')}:${process.env['PATH'] ?? ''}` }, command, args);
    const states = async (speak: typeof real, names: string) =>
      (await speak('sacct', '-nPX', '-S', 'now-1hour', '--name', names, '-o', 'State')).stdout.trim().split('\n');

    const done = async (said: Promise<Said>) => {
      const { code, stderr } = await said;
      if (code !== 0) throw new Error(stderr);
    };

    /** The real one lists an array's tasks by when the database heard of them. */
    const sorted = (text: string) => {
      const lines = text.split('\n').filter((line) => !STOPPED.test(line));
      return [...lines.filter((line) => !ARRAY.test(line)), ...lines.filter((line) => ARRAY.test(line))];
    };

    async function alike(...words: string[]): Promise<void> {
      const [theirs, mine] = [await real('sacct', ...words), await ours('sacct', ...words)];
      expect({ words, ...mine, stdout: sorted(mine.stdout) }).toEqual({
        words,
        ...theirs,
        stdout: sorted(theirs.stdout),
      });
    }

    it('shows jobs and steps with the same fields, states and exit codes', async () => {
      await alike('-P', '-j', '1,2,3,4,5,6,7,8,9,10,11', '-o', SAME);
      await alike('-P', '-X', '-j', '1,2,3,4,5,6,7,8,9,10,11', '-o', SAME);
    });

    it.each([
      ['-o', 'jobid,state,exitcode'],
      ['-X', '-o', 'jobid,jobname,state'],
      ['-b', '-j', '2'],
      ['-n', '-p', '-j', '2', '-o', 'jobid,state'],
      ['-P', '--delimiter=:', '-j', '3', '-o', 'jobid,state,exitcode'],
      ['-j', '11_2', '-o', 'jobid%20,jobname%-5,state%4'],
      ['-j', '11', '-X', '-n', '-o', 'jobid,exitcode'],
      ['-j', '1.batch', '-o', 'jobid,state'],
      ['-j', '1.batch,2', '-n', '-o', 'jobid,state'],
      // As submitit asks.
      ['-o', 'JobID,State', '--parsable2', '-j', '1', '-j', '2', '-o', 'ExitCode'],
      ['-j', '99'],
      ['-j', '5', '-P', '-o', 'JobID,State,Start,End,Eligible,Reason,NodeList,AllocTRES'],
      ['-j', '10', '-P', '-o', 'JobID,State,Start,Eligible,Reason,NodeList,AllocTRES'],
      ['-j', '1', '--units=G', '-P', '-o', 'reqmem,reqtres'],
      ['--name=bad,good', '-X', '-o', 'jobid'],
      ['-u', userInfo().username, '-X', '-o', 'jobid'],
    ])('%s %s %s %s %s', async (...words) => alike(...words));

    it.each([
      ['-s', 'R'],
      ['-s', 'PD'],
      ['-s', 'F'],
      ['-s', 'F', '-S', '00:00'],
      ['-s', 'f,completed', '-S', 'now-1hour', '-E', 'now'],
      ['-s', 'CA,TO', '-S', 'today', '-E', 'now+1minute'],
      ['-s', 'R', '-S', 'now-1hour', '-E', 'now'],
      ['-s', 'PD', '-S', 'now-1hour', '-E', 'now'],
      ['-s', 'F', '-j', '1,2'],
      ['-S', '2020-01-01', '-E', '2020-01-02'],
      ['-S', '01/01/20', '-E', '010220'],
      ['-S', 'now-1hour'],
      ['-S', 'noon', '-E', 'tomorrow'],
      ['-E', '2020-01-01T01:02:03'],
      ['-S', 'garbage'],
      ['-s', 'nosuch'],
      ['-j', 'abc'],
      ['-o', 'nosuch'],
      ['--nosuch'],
      ['foo', 'bar'],
    ])('%s %s %s %s %s %s', async (...words) => alike('-X', '-o', 'jobid,state', ...words));

    it('lists the same fields, with the same widths and long format', async () => {
      await alike('--helpformat');
      await alike('-e');
      const all = (await real('sacct', '-e')).stdout.trim().split(/\s+/).join();
      const heads = async (speak: typeof real, ...words: string[]) =>
        (await speak('sacct', ...words)).stdout.split('\n').slice(0, 2);
      expect(await heads(ours, '-j', '1', '-o', all)).toEqual(await heads(real, '-j', '1', '-o', all));
      expect(await heads(ours, '-l', '-j', '1')).toEqual(await heads(real, '-l', '-j', '1'));
    });

    it('writes JSON with the same names and types', async () => {
      const shape = (value: unknown): unknown =>
        Array.isArray(value)
          ? value.slice(0, 1).map(shape)
          : value === null || typeof value !== 'object'
            ? value === null
              ? 'null'
              : typeof value
            : Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shape(one)]));
      const jobs = async (speak: typeof real) => {
        const { stdout } = await speak('sacct', '--json', '-j', '1');
        // Which amounts are counted depends on the real one's configuration.
        const { jobs: all } = JSON.parse(stdout) as { jobs: Record<string, unknown>[] };
        return all.map((job) => shape({ ...job, flags: undefined, tres: undefined }));
      };
      expect(await jobs(ours)).toEqual(await jobs(real));
    });
  },
);
