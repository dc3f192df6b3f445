import type { Gryphus } from '../../index.ts';
import { getopt, Refused } from './options.ts';
import { duration, elapsed, moment, namedJobs, type SlurmJob, slurmJobs } from './slurm-jobs.ts';
import { actOn, targetsOf } from './slurm-targets.ts';

/** `scontrol show job`, `hold`, `release`, `ping`. */
export async function scontrol(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const { values, words: rest } = getopt('-o|--oneliner -d|--details -a|--all -Q|--quiet -v|--verbose', words);
  const [verb = '', ...more] = rest;
  switch (verb) {
    case 'show':
      if (!/^job(s|id)?$/.test(more[0] ?? '')) throw new Refused(`invalid entity:${more[0] ?? ''} for keyword:show`);
      return show(gryphus, more[1], values.has('oneliner'), write);
    case 'hold':
    case 'release': {
      const targets = await targetsOf(gryphus, namedJobs(more.join(',')));
      if (targets.seen.size === 0) throw new Refused('Invalid job id specified');
      await actOn(gryphus, verb, targets, `scontrol ${verb}`);
      return 0;
    }
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
    write(oneLine ? `${lines.join(' ')}\n` : `${lines.join('\n   ')}\n\n`);
  }
  if (found === 0 && named !== undefined) throw new Refused('slurm_load_jobs error: Invalid job id specified');
  if (found === 0) write('No jobs in the system\n');
  return 0;
}

function describe(job: SlurmJob, now: number): string[] {
  const array = job.task === undefined ? '' : ` ArrayJobId=${job.cluster} ArrayTaskId=${job.task}`;
  return [
    `JobId=${job.raw}${array} JobName=${job.name}`,
    `UserId=${job.user}(${process.getuid?.() ?? 0}) GroupId=${job.user}(${process.getgid?.() ?? 0}) MCS_label=N/A`,
    `Priority=${job.priority} Nice=0 Account=${job.account || '(null)'} QOS=(null)`,
    `JobState=${job.state} Reason=${job.reason} Dependency=${job.dependency || '(null)'}`,
    `Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=${job.exit}`,
    `RunTime=${duration(elapsed(job, now), true)} TimeLimit=${job.limit === undefined ? 'UNLIMITED' : duration(job.limit * 60, true)} TimeMin=N/A`,
    `SubmitTime=${moment(job.submitted, 'Unknown')} EligibleTime=${moment(job.submitted, 'Unknown')}`,
    `StartTime=${moment(job.started, 'Unknown')} EndTime=${moment(job.ended, 'Unknown')} Deadline=N/A`,
    `Partition=${job.partition} AllocNode:Sid=gryphus:0`,
    `NodeList=${job.node || '(null)'}`,
    `NumNodes=1 NumCPUs=${job.cpus} NumTasks=1 CPUs/Task=${job.cpus}`,
    `MinMemoryNode=${job.memoryMb}M`,
    `Command=${job.command}`,
    `WorkDir=${job.directory}`,
    `StdOut=${job.output.startsWith('/') || job.output === '' ? job.output : `${job.directory}/${job.output}`}`,
    ...(job.comment === '' ? [] : [`Comment=${job.comment}`]),
  ];
}
