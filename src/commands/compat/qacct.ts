import type { Gryphus } from '../../index.ts';
import { Refused } from './options.ts';
import { lettersOf, sgeJobs, sgeName } from './sge-jobs.ts';
import { sgeOptions } from './sge-options.ts';
import type { SlurmJob } from './slurm-job.ts';
import { ctime, elapsed } from './slurm-jobs.ts';

/** Accounts for ended jobs as Grid Engine's `qacct -j` does; the exit status. */
export async function qacct(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const { values, words: rest } = sgeOptions('-j= -t= -o=', words);
  const wanted = values.get('-j');
  if (wanted === undefined || rest.length > 0) throw new Refused('only qacct -j JOB is supported');
  const name = sgeName(wanted, values.get('-t'));
  const owner = values.get('-o');
  const jobs = (await sgeJobs(gryphus, [name], 'everywhere')).filter(
    (job) => lettersOf(job) === undefined && (owner === undefined || owner === job.user) && ran(job),
  );
  if (jobs.length === 0) throw new Refused(`error: job ${name.kind === 'number' ? 'id' : 'name'} ${wanted} not found`);
  for (const job of jobs) write(record(job));
  return 0;
}

/** Grid Engine has no record of a job that was deleted while it waited. */
function ran({ starts, started }: SlurmJob): boolean {
  return starts > 0 || started !== undefined;
}

/** Grid Engine's accounting(5): why a job failed, and its exit status as a shell gives it. */
function ending(job: SlurmJob): { readonly failed: string; readonly status: number } {
  const [code = 0, signal = 0] = job.exit.split(':').map(Number);
  if (signal > 0) return { failed: '100 : assumedly after job', status: 128 + signal };
  if (job.state === 'COMPLETED' || code > 0) return { failed: '0    ', status: code };
  if (job.state === 'TIMEOUT') return { failed: '37  : qmaster enforced h_rt, h_cpu, or h_vmem limit', status: 137 };
  return { failed: '100 : assumedly after job', status: 137 };
}

function record(job: SlurmJob): string {
  const { failed, status } = ending(job);
  const seconds = (n: number) => `${n.toFixed(3)}s`;
  const rows: [string, string][] = [
    ['qname', (job.partition || 'all.q').padEnd(20)],
    ['hostname', job.node.padEnd(20)],
    ['owner', job.user.padEnd(20)],
    ['project', 'NONE'.padEnd(20)],
    ['jobname', job.name.padEnd(20)],
    ['jobnumber', String(job.cluster).padEnd(20)],
    ['taskid', job.task === undefined ? 'undefined' : `${job.task}`],
    ['account', (job.account || 'sge').padEnd(20)],
    ['priority', String(job.priority).padEnd(20)],
    ['qsub_time', ctime(job.submitted)],
    ['start_time', ctime(job.started ?? job.submitted)],
    ['end_time', ctime(job.ended ?? job.submitted)],
    ['granted_pe', (job.cpus > 1 ? 'smp' : 'NONE').padEnd(20)],
    ['slots', String(job.cpus).padEnd(20)],
    ['failed', failed],
    ['exit_status', String(status).padEnd(20)],
    ['ru_wallclock', `${elapsed(job, job.ended ?? 0)}s`],
    ['ru_utime', seconds(job.userCpu)],
    ['ru_stime', seconds(job.systemCpu)],
    ['cpu', seconds(job.userCpu + job.systemCpu)],
    ['maxvmem', `${job.residentKb}.000KB`],
  ];
  return `==============================================================\n${rows.map(([name, value]) => `${name.padEnd(12)} ${value}\n`).join('')}`;
}
