import type { AttemptSpec, Refusal, SiteCause } from '../site/contract.ts';
import { shellQuote } from '../util/shell-quote.ts';
import type { Account, Backend, QueueEntry } from './contract.ts';
import { coresOf } from './cores.ts';

/**
 * An HTCondor pool driven by its commands (condor.sh); facts from 23.9 and 25.14. Its execution points must share our
 * directory: HTCondor transfers no files here. It has no queues, so a job's queue name means nothing.
 */
export const condor: Backend = {
  name: 'condor',
  shell: ['condor.sh', 'condor-node.sh'],
  detect:
    'command -v condor_submit >/dev/null 2>&1 && look condor "$(bounded 20 condor_version 2>&1)" condor_q -totals',
  lacks: { command: 'batch_queue' },
  // A lost host is noticed only when job_lease_duration ends (manual; 40 minutes by default).
  patience: { lookEvery: 30_000, lookAgain: 1000, lost: 12_000, lag: 30_000, verdict: 5000, closing: 2_700_000 },
  arrays: true,
  accounts: true,
  submitWords,
  // `-terse` prints the first and the last job; for an element of an array we print its own id.
  idOf: (answer) => /^(\d+\.\d+)( - \d+\.\d+)?$/.exec(answer)?.[1],
  refusalOf: condorRefusal,
  queueEntry,
  accountOf,
  capacityOf: coresOf,
  // It hands its words to ssh, which joins them to a line for the shell there.
  beside: (id, commandLine) => `exec condor_ssh_to_job ${id} ${shellQuote(commandLine)}`,
};

/**
 * The shadow of a parallel job evaluates its policy too, with an ad in which the job is idle while it runs; and if the
 * shadow dies, NumJobStarts stays as it was.
 */
const HAS_MACHINES = 'RemoteHost =!= undefined';
const LEFT_ITS_MACHINES = '(JobStatus == 1 && NumShadowStarts > 0 && RemoteHost =?= undefined)';

/** Lines of a submit description, `--`, options for condor_submit. */
function submitWords(spec: AttemptSpec): string[] {
  const { cpus, memoryMb, diskKb, gpus, walltimeSeconds, wholeHost, nodes } = spec.resources;
  const { project, extraArgs } = spec.batch;
  // A job that was evicted after it had started leaves instead of starting again.
  const removals = nodes === undefined ? ['(JobStatus == 1 && NumJobStarts > 0)'] : [LEFT_ITS_MACHINES];
  if (walltimeSeconds !== undefined) {
    const runs = nodes === undefined ? 'JobStatus == 2' : HAS_MACHINES;
    removals.push(`(${runs} && time() - JobCurrentStartDate > ${Math.max(1, Math.ceil(walltimeSeconds))})`);
  }
  return [
    // condor.sh looks at the first line, and passes the ranks on to condor-node.sh.
    ...(nodes === undefined
      ? ['universe = vanilla']
      : ['universe = parallel', `machine_count = ${nodes.count}`, `ranks = ${nodes.ranks}`]),
    'executable = /bin/sh',
    'transfer_executable = False',
    'should_transfer_files = NO',
    'initialdir = /',
    'output = /dev/null',
    'error = /dev/null',
    'notification = Never',
    `description = ${spec.title.replace(/[^\w .-]/g, '_')}`,
    wholeHost ? 'request_cpus = TARGET.TotalCpus' : `request_cpus = ${Math.max(1, Math.ceil(cpus))}`,
    ...(memoryMb === undefined ? [] : [`request_memory = ${Math.ceil(memoryMb)}`]),
    ...(diskKb === undefined ? [] : [`request_disk = ${Math.ceil(diskKb)}`]),
    // Only a slot that still has everything its host has (manual, partitionable slots).
    ...(wholeHost ? ['requirements = TARGET.Cpus == TARGET.TotalCpus'] : []),
    ...(gpus ? [`request_gpus = ${gpus}`] : []),
    ...(project === undefined ? [] : [`accounting_group = ${project.replace(/[^\w.-]/g, '_')}`]),
    'want_graceful_removal = True',
    'job_max_vacate_time = 10',
    `periodic_remove = ${removals.join(' || ')}`,
    '--',
    ...extraArgs,
  ];
}

const LATER =
  /Can't find address of|Failed to connect|MAX_JOBS|Connection refused|Unable to connect|No space left|quota exceeded|temporarily/i;
/** The pool takes no more jobs for now. */
const FULL = /MAX_JOBS/;
const UNCLEAR = /timed? ?out|Failed to (commit|end) |lost connection|Error reading|transaction/i;
/**
 * A submit requirement of the pool was not met: the schedd refused the job and gives the reason on the next line
 * (SUBMIT_REQUIREMENT_NAMES).
 */
const UNMET =
  /Failed to commit job submission into the queue\.\s+ERROR: (?!.*(connect|timed? ?out|socket|errno))(\S.*)/is;

/** condor_submit exits with 1 whatever the error was, so only its words tell. */
export function condorRefusal(status: number, text: string): Refusal | 'unclear' {
  const message = sentence(text);
  if (status === 127) {
    return { kind: 'never', code: 'site-refused', message: `condor_submit was not found at the site: ${message}` };
  }
  if (status === 124 || status === 137) return 'unclear';
  const unmet = UNMET.exec(text)?.[2];
  if (unmet !== undefined && !LATER.test(unmet)) {
    return { kind: 'never', code: 'site-refused', message: sentence(unmet) };
  }
  if (UNCLEAR.test(text)) return 'unclear';
  if (!/ERROR|not allowed/i.test(text)) return 'unclear';
  if (LATER.test(text)) return { kind: 'later', code: FULL.test(text) ? 'site-full' : 'site-busy', message };
  return { kind: 'never', code: 'site-refused', message };
}

function sentence(message: string): string {
  const lines = message
    .split('\n')
    .map((line) => line.replace(/^(Submitting job\(s\)|ERROR:)+ */, '').trim())
    .filter((line) => line !== '' && !line.startsWith('To monitor your'));
  return lines.length === 0 ? 'condor_submit failed without a message' : [...new Set(lines)].slice(0, 3).join('; ');
}

/**
 * Values of HoldReasonCode with which a pool stops a running job (manual, "Job ClassAd Attributes"), and of 21, the
 * host's policy, with the subcode of HTCondor's own policies (HOLD_IF_MEMORY_EXCEEDED).
 */
const HOLDS: Readonly<Record<string, SiteCause>> = {
  34: 'out-of-memory',
  46: 'timeout',
  47: 'timeout',
  '21 102': 'out-of-memory',
};

/** LastRejMatchReason of a job that no machine matches, now or ever. */
const UNMATCHED = 'no match found';

/**
 * `STATUS STARTS HOLDCODE SUBCODE HOST WORDS`, where STATUS is the number JobStatus (manual, "Job ClassAd Attributes").
 */
function queueEntry(rest: string): QueueEntry {
  const [status = '', starts = '', code = '', subCode = '', host = '', ...more] = rest.split(' ');
  const said = more.join(' ').trim();
  const reason = (otherwise: string): string => (said === '' || said === 'undefined' ? otherwise : said);
  const where = host === '' || host === 'undefined' ? {} : { host: host.replace(/^.*@/, '') };
  switch (status) {
    case '1': {
      const why = reason(Number(starts) > 0 ? 'it was evicted' : 'idle');
      return {
        is: 'waiting',
        message: why === UNMATCHED ? `${why} yet; \`condor_q -better-analyze\` there says more` : why,
      };
    }
    case '2':
    case '6':
      return { is: 'running', ...where };
    case '3':
      // A removed job stays in the queue until its processes have ended.
      if ('host' in where) return { is: 'running', ...where };
      return { is: 'ended', by: 'cancelled', message: 'removed' };
    case '4':
      return { is: 'ended', by: 'itself', message: 'completed' };
    case '5': {
      const by = HOLDS[code] ?? HOLDS[`${code} ${subCode}`];
      return { is: 'held', message: `${reason('held')} (code ${code})`, ...(by && { by }) };
    }
    case '7':
      return { is: 'suspended', message: reason('suspended') };
    default:
      return { is: 'unclear', message: rest };
  }
}

/** A line of condor_history: `CLUSTER PROC TAG STATUS LAST BYSIGNAL SIGNAL CODE REASON`. */
function accountOf(line: string): Account | undefined {
  const [cluster = '', proc = '', tag = '', status = '', last = '', bySignal = '', signal = '', code = '', ...more] =
    line.split(' ');
  if (!/^\d+$/.test(cluster) || !/^\d+$/.test(proc) || !/^[34]$/.test(status)) return undefined;
  const key = /^gryphus\.(.+)\.\d+$/.exec(tag)?.[1];
  const id = { id: `${cluster}.${proc}`, ...(key === undefined ? {} : { key }) };
  const reason = more.join(' ');
  const how = bySignal === 'true' ? `signal ${signal}` : `exit status ${code}`;
  // Only the pool, or the end of the machine, kills the wrapper.
  if (status === '4') return { ...id, by: bySignal === 'true' ? 'vanished' : 'itself', message: how };
  if (!/PeriodicRemove/i.test(reason)) return { ...id, by: 'cancelled', message: reason };
  // Our own periodic_remove has only two reasons: over its time limit, or idle after it had started.
  if (last === '2') return { ...id, by: 'timeout', message: 'it exceeded the run time that it requested' };
  return { ...id, by: 'preempted', message: 'the pool evicted it; it was not started again' };
}
