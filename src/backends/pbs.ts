import type { AttemptSpec, Refusal } from '../site/contract.ts';
import type { Account, Backend } from './contract.ts';
import { coresOf } from './cores.ts';
import { DELETED, fieldsOf, pbsAccount, pbsEntry, RERUN } from './pbs-entry.ts';

/** OpenPBS and PBS Pro driven by their commands (pbs.sh, pbs-family.sh); facts from OpenPBS 23.06. */
export const pbs: Backend = {
  name: 'pbs',
  shell: ['pbs.sh', 'pbs-family.sh', 'job-script.sh'],
  detect: '[ "$qsub" = pbs ] && look pbs "$qsub_says" qstat -B',
  lacks: { command: 'request_disk', instead: '-l scratch=10gb' },
  // A qsub that lost its connection may still submit some time later; a MoM notices up to 10 s later that what it
  // killed has ended.
  patience: { lookEvery: 30_000, lookAgain: 1000, lost: 12_000, lag: 30_000, verdict: 5000, closing: 30_000 },
  arrays: true,
  accounts: true,
  submitWords,
  idOf: (answer) => /^\d+(\[\d+\])?\.[^\s]+$/.exec(answer)?.[0],
  refusalOf: pbsRefusal,
  queueEntry: (rest) => pbsEntry(rest, endOf),
  accountOf: (line) => pbsAccount(line, endOf),
  capacityOf: coresOf,
};

function submitWords(spec: AttemptSpec): string[] {
  const { cpus, memoryMb, gpus, walltimeSeconds, wholeHost, nodes } = spec.resources;
  const { queue, project, extraArgs } = spec.batch;
  // PBS refuses `select` together with job-wide resources from the user.
  const own = extraArgs.some((word) => /\b(select|nodes|ncpus|mem|place)=/.test(word));
  const chunk = [
    `ncpus=${Math.max(1, Math.ceil(cpus))}`,
    ...(memoryMb === undefined ? [] : [`mem=${Math.ceil(memoryMb)}mb`]),
    ...(gpus ? [`ngpus=${gpus}`] : []),
    ...(nodes === undefined ? [] : [`mpiprocs=${nodes.ranks}`, `ompthreads=${cpus / nodes.ranks}`]),
  ];
  // Without `scatter`, several chunks may be on one host.
  const place = [...((nodes?.count ?? 1) > 1 ? ['scatter'] : []), ...(wholeHost ? ['excl'] : [])];
  return [
    ...(own ? [] : ['-l', `select=${nodes?.count ?? 1}:${chunk.join(':')}`]),
    ...(place.length > 0 && !own ? ['-l', `place=${place.join(':')}`] : []),
    ...(walltimeSeconds === undefined ? [] : ['-l', `walltime=${Math.max(1, Math.ceil(walltimeSeconds))}`]),
    ...(queue === undefined ? [] : ['-q', queue]),
    ...(project === undefined ? [] : ['-A', project]),
    ...extraArgs,
  ];
}

/**
 * Exit statuses are PBSE numbers modulo 256. These are temporary: 38 and 39, too many jobs or too many resources in
 * use; 173, queue disabled; 160 and 162, no server reached; 222, no MoM.
 */
const LATER = new Set([38, 39, 173, 160, 162, 222]);
const PASSING =
  /Connection refused|cannot connect to server|Maximum number of jobs|would exceed .*\blimit\b|Queue is not enabled|No space left|Disk quota exceeded/i;
/** PBSE 38 and 39, and their texts. */
const FULL = /Maximum number of jobs|would exceed .*\blimit\b/i;
/** qsub sent its request, then lost the server or the answer. */
const UNCLEAR =
  /timed out|End of File|Premature end|errno=15031|protocol error|Connection reset|Broken pipe|Failed to (recv|send)/i;

/**
 * What follows `qsub: ` is the server's answer, or qsub's own error before it asked; a site's hooks refuse with texts
 * and statuses of their own. 255 is a server that cannot be reached, or one that went away halfway.
 */
export function pbsRefusal(status: number, text: string): Refusal | 'unclear' {
  const message = sentence(text);
  if (status === 127)
    return { kind: 'never', code: 'site-refused', message: `qsub was not found at the site: ${message}` };
  if (status === 124 || status === 137 || UNCLEAR.test(text)) return 'unclear';
  if (LATER.has(status) || PASSING.test(text))
    return {
      kind: 'later',
      code: FULL.test(text) || status === 38 || status === 39 ? 'site-full' : 'site-busy',
      message,
    };
  return status !== 255 && /^qsub: \S/m.test(text) ? { kind: 'never', code: 'site-refused', message } : 'unclear';
}

function sentence(message: string): string {
  const usage = message.search(/^usage:/m);
  const lines = (usage === -1 ? message : message.slice(0, usage))
    .split('\n')
    .map((line) => line.replace(/^qsub: /, '').trim())
    .filter((line) => line !== '');
  return lines.length === 0 ? 'qsub failed without a message' : [...new Set(lines)].slice(-3).join('; ');
}

/**
 * Exit_status: 0 to 255 is the script's; 256 + n means that signal n ended its first process; below zero is PBS's own
 * (JOB_EXEC_* in pbs_error.h). Absent: it never ran. Substate 91: deleted.
 */
function endOf({ state, exit, substate, comment }: ReturnType<typeof fieldsOf>): Account['by'] {
  if (/exceeded resource/.test(comment))
    return /exceeded resource mem|vmem/.test(comment) ? 'out-of-memory' : 'timeout';
  if (RERUN.test(substate)) return 'requeued';
  if (substate === '91' || DELETED.test(comment)) return 'cancelled';
  // A server without history knows only that the element is over.
  if (!/^-?\d+$/.test(exit)) return substate === '92' || state === 'X' ? 'itself' : 'cannot-start';
  const status = Number(exit);
  if (status > 256) return status === 271 ? 'cancelled' : 'vanished';
  return status >= 0 ? 'itself' : (ENDS[status] ?? 'cannot-start');
}
/** -4: a starting MoM found it running; -24 and -25: killed for using more processors than requested. */
const ENDS: Readonly<Record<number, Account['by']>> = {
  [-4]: 'node-fail',
  [-5]: 'node-fail',
  [-6]: 'node-fail',
  [-11]: 'preempted',
  [-14]: 'node-fail',
  [-20]: 'node-fail',
  [-24]: 'cancelled',
  [-25]: 'cancelled',
  [-26]: 'out-of-memory',
  [-27]: 'out-of-memory',
  [-28]: 'timeout',
  [-29]: 'timeout',
};
