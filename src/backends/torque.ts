import type { AttemptSpec, Refusal } from '../site/contract.ts';
import type { Account, Backend } from './contract.ts';
import { coresOf } from './cores.ts';
import { type fieldsOf, pbsEntry } from './pbs-entry.ts';

/**
 * Torque driven by its commands (torque.sh, pbs-family.sh); facts from Torque 6.1.3 and from Slurm's imitations of its
 * commands (slurm-wlm-torque 22.05). Ended jobs stay in its queue for a while (keep_completed); users have no
 * accounting.
 */
export const torque: Backend = {
  name: 'torque',
  shell: ['torque.sh', 'pbs-family.sh', 'job-script.sh'],
  detect: '[ "$qsub" = torque ] && look torque "$qsub_says" qstat -q',
  lacks: { command: 'request_disk', instead: '-l file=10gb' },
  patience: { lookEvery: 30_000, lookAgain: 1000, lost: 12_000, lag: 30_000, verdict: 5000, closing: 5000 },
  arrays: true,
  accounts: false,
  // Slurm's imitations give no exit status, and a server may keep no ended jobs.
  silent: true,
  submitWords,
  // With or without the server's name; an array's id has brackets.
  idOf: (answer) => /^\d+(\[\d*\])?(\.[^\s]+)?$/.exec(answer)?.[0],
  refusalOf: torqueRefusal,
  queueEntry: (rest) => pbsEntry(rest, endOf),
  capacityOf: coresOf,
};

function submitWords(spec: AttemptSpec): string[] {
  const { cpus, memoryMb, gpus, walltimeSeconds, wholeHost, nodes } = spec.resources;
  const { queue, project, extraArgs } = spec.batch;
  const own = extraArgs.some((word) => /\b(nodes|procs|select)=/.test(word));
  const count = nodes?.count ?? 1;
  return [
    ...(own ? [] : ['-l', `nodes=${count}:ppn=${Math.max(1, Math.ceil(cpus))}${gpus ? `:gpus=${gpus}` : ''}`]),
    // The whole job's.
    ...(memoryMb === undefined ? [] : ['-l', `mem=${Math.ceil(memoryMb) * count}mb`]),
    ...(wholeHost ? ['-W', 'x=NACCESSPOLICY:SINGLEJOB'] : []),
    ...(walltimeSeconds === undefined ? [] : ['-l', `walltime=${Math.max(1, Math.ceil(walltimeSeconds))}`]),
    ...(queue === undefined ? [] : ['-q', queue]),
    ...(project === undefined ? [] : ['-A', project]),
    ...extraArgs,
  ];
}

const LATER =
  /Connection refused|cannot connect to server|connect failure|Queue is not enabled|currently not available|too busy|transient failure|shutting down|No free connections|could not connect to trqauthd|Protocol authentication error|Munge encode failed|No space left|Disk quota exceeded/i;
/** The site takes no more jobs for now: a limit of the queue or of the server, for one user or for all. */
const FULL = /Maximum number of jobs|MaxSubmit|temporarily unable/i;
/** qsub itself retries after some of these, and may have submitted twice. */
const UNCLEAR =
  /timed out|time out|End of File|Zero Bytes|Unexpected message|protocol error|Request Protocol|internal error|System error|(data to|data from|in) socket|Socket close|Error (saving|writing|opening) file|errno=15031/i;
const ANSWERED =
  /Batch job submission failed|Unable to open file|cannot be loaded|[Ii]nvalid|[Uu]nknown|[Uu]nrecognized|[Ii]llegal|illegally|not valid|Unauthorized|exceeds|Job rejected|No default queue|script file|submit error \(|^\[?[Uu]sage/m;

export function torqueRefusal(status: number, text: string): Refusal | 'unclear' {
  const message = sentence(text);
  if (status === 127)
    return { kind: 'never', code: 'site-refused', message: `qsub was not found at the site: ${message}` };
  if (status === 124 || status === 137) return 'unclear';
  if (FULL.test(text)) return { kind: 'later', code: 'site-full', message };
  if (LATER.test(text)) return { kind: 'later', code: 'site-busy', message };
  if (UNCLEAR.test(text)) return 'unclear';
  return ANSWERED.test(text) ? { kind: 'never', code: 'site-refused', message } : 'unclear';
}

/** Slurm's qsub prints the command that it ran, then that command's message. */
function sentence(message: string): string {
  const usage = message.search(/^usage:/im);
  const lines = (usage > 0 ? message.slice(0, usage) : message)
    .split('\n')
    .filter(
      (line) => !/^(There was an error running|The command was:|and the output was:)|sbatch -|^'.*sbatch /.test(line),
    )
    .map((line) => line.replace(/^[[' ]*(sbatch: (error: )?|qsub: )?|[\]']$/g, '').trim())
    .filter((line) => line !== '' && line !== 'exiting');
  return lines.length === 0 ? 'qsub failed without a message' : [...new Set(lines)].slice(-3).join('; ');
}

/**
 * exit_status: 0 to 255 is the script's; 256 + n means signal n; below zero is Torque's own (JOB_EXEC_* in pbs_job.h).
 */
function endOf({ exit, host }: ReturnType<typeof fieldsOf>): Account['by'] {
  // Slurm's qstat gives no exit status. A job without a host was deleted while it waited.
  if (!/^-?\d+$/.test(exit)) return host === '' ? 'cancelled' : 'itself';
  const status = Number(exit);
  if (status > 256) return status === 271 || status === 265 ? 'cancelled' : 'vanished';
  return status >= 0 ? 'itself' : (ENDS[status] ?? 'cannot-start');
}
const ENDS: Readonly<Record<number, Account['by']>> = {
  [-4]: 'node-fail',
  [-10]: 'out-of-memory',
  [-11]: 'timeout',
  [-12]: 'timeout',
};
