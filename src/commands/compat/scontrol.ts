import type { Gryphus } from '../../index.ts';
import { getopt, Refused } from './options.ts';
import type { SlurmJob } from './slurm-job.ts';
import { duration, elapsed, endsAt, moment, namedJobs, outputPaths, slurmJobs, tres } from './slurm-jobs.ts';
import { actOn, targetsOf } from './slurm-targets.ts';

/** Its options, for `getopt`. */
export const SPEC = '-o|--oneliner -d|--details -a|--all -Q|--quiet -v|--verbose';

/** `scontrol show job`, `show config`, `show hostnames`, `hold`, `release`, `ping`, `version`. */
export async function scontrol(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const { values, words: rest } = getopt(SPEC, words);
  const [verb = '', ...more] = rest;
  switch (verb) {
    case 'show':
      if (/^config(uration)?$/.test(more[0] ?? '')) {
        write(configuration());
        return 0;
      }
      if (/^hostnames?$/.test(more[0] ?? '')) {
        for (const host of hostNames(more[1] ?? process.env['SLURM_JOB_NODELIST'] ?? '')) write(`${host}\n`);
        return 0;
      }
      if (!/^job(s|id)?$/.test(more[0] ?? '')) throw new Refused(`invalid entity:${more[0] ?? ''} for keyword:show`);
      return show(gryphus, more[1], values.has('oneliner'), write);
    case 'hold':
    case 'release': {
      const targets = await targetsOf(gryphus, namedJobs(more.join(',')));
      if (targets.seen.size === 0) throw new Refused('Invalid job id specified');
      await actOn(gryphus, verb, targets, `scontrol ${verb}`);
      return 0;
    }
    case 'version':
      write('slurm-wlm 22.05.8\n');
      return 0;
    case 'ping':
      write('Slurmctld(primary) at gryphus is UP\n');
      return 0;
    default:
      throw new Refused(`invalid keyword: ${verb}`);
  }
}

async function show(
  gryphus: Gryphus,
  id: string | undefined,
  oneLine: boolean,
  write: (text: string) => void,
): Promise<number> {
  const named = id === undefined ? undefined : namedJobs(id);
  const now = Math.floor(Date.now() / 1000);
  let found = 0;
  for await (const job of slurmJobs(gryphus, named, named === undefined ? 'queue' : 'everywhere')) {
    found++;
    const lines = describe(job, now);
    write(oneLine ? `${lines.join(' ')}\n` : `${lines.join('\n   ')}\n   \n\n`);
  }
  if (found === 0 && named !== undefined)
    throw new Refused('slurm_load_jobs error: Invalid job id specified', 1, 'bare');
  if (found === 0) write('No jobs in the system\n');
  return 0;
}

/** What tools ask for: Toil looks at its jobs no more often than in the time slice, here Slurm's shortest. */
function configuration(): string {
  const at = moment(Math.floor(Date.now() / 1000), '');
  return `Configuration data as of ${at}
AcctGatherNodeFreq      = 0 sec
ClusterName             = gryphus
MaxArraySize            = 1000001
SchedulerTimeSlice      = 5 sec
SLURM_VERSION           = 22.05.8
`;
}

/** `n[1-3,07],x` as its names. */
function hostNames(list: string): string[] {
  return list
    .split(/,(?![^[]*\])/)
    .filter((one) => one !== '')
    .flatMap((one) => {
      const [, before, ranges, after] = /^([^[]*)\[([\d,-]+)\](.*)$/.exec(one) ?? [];
      if (ranges === undefined) return [one];
      return ranges.split(',').flatMap((range) => {
        const [from = '', to = from] = range.split('-');
        const count = Math.min(100_000, Math.max(0, Number(to) - Number(from) + 1));
        return Array.from({ length: count }, (_, i) => {
          return `${before}${String(Number(from) + i).padStart(from.length, '0')}${after}`;
        });
      });
    });
}

function describe(job: SlurmJob, now: number): string[] {
  const array = job.task === undefined ? '' : ` ArrayJobId=${job.cluster} ArrayTaskId=${job.task}`;
  const { out, error } = outputPaths(job);
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  const submitted = moment(job.submitted, 'Unknown');
  return [
    `JobId=${job.raw}${array} JobName=${job.name}`,
    `UserId=${job.user}(${uid}) GroupId=${job.user}(${gid}) MCS_label=N/A`,
    `Priority=${job.priority} Nice=0 Account=${job.account || '(null)'} QOS=(null)`,
    `JobState=${job.state} Reason=${job.reason} Dependency=${job.dependency || '(null)'}`,
    `Requeue=0 Restarts=${Math.max(0, job.starts - 1)} BatchFlag=1 Reboot=0 ExitCode=${job.exit}`,
    `RunTime=${duration(elapsed(job, now), true)} TimeLimit=${job.limit === undefined ? 'UNLIMITED' : duration(job.limit * 60, true)} TimeMin=N/A`,
    `SubmitTime=${submitted} EligibleTime=${submitted}`,
    `AccrueTime=${submitted}`,
    `StartTime=${moment(job.started, 'Unknown')} EndTime=${moment(endsAt(job), 'Unknown')} Deadline=N/A`,
    `SuspendTime=None SecsPreSuspend=0 LastSchedEval=${submitted} Scheduler=Main`,
    `Partition=${job.partition} AllocNode:Sid=gryphus:0`,
    'ReqNodeList=(null) ExcNodeList=(null)',
    `NodeList=${job.node}`,
    ...(job.node === '' ? [] : [`BatchHost=${job.node.replace(/[,[].*/, '')}`]),
    `NumNodes=${job.nodes} NumCPUs=${job.cpus} NumTasks=1 CPUs/Task=${job.cpus} ReqB:S:C:T=0:0:*:*`,
    `TRES=${tres(job)}`,
    'Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*',
    `MinCPUsNode=${job.cpus} MinMemoryNode=${job.memoryMb}M MinTmpDiskNode=0`,
    'Features=(null) DelayBoot=00:00:00',
    'OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)',
    `Command=${job.command || '(null)'}`,
    `WorkDir=${job.directory}`,
    ...(job.comment === '' ? [] : [`Comment=${job.comment} `]),
    `StdErr=${error}`,
    'StdIn=/dev/null',
    `StdOut=${out}`,
    'Power=',
  ];
}
