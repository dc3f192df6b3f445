import type { AttemptSpec, Refusal } from '../site/contract.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { condor } from './condor.ts';
import type { Account, Backend, QueueEntry } from './contract.ts';

/**
 * Another Gryphus driven by its command line (gryphus.sh, condor.sh): the jobs of one agent become jobs in the queue of
 * another, with its own connections and rights (Condor-C's idea). Its sites must share the file system of the machine
 * where it runs.
 */
const { detect: _detect, lacks: _lacks, ...likeCondor } = condor;
export const gryphus: Backend = {
  ...likeCondor,
  name: 'gryphus',
  shell: ['gryphus.sh', 'condor.sh'],
  submitWords,
  refusalOf,
  queueEntry,
  accountOf,
  beside: (id, commandLine) => `exec gryphus ssh ${id} -- ${shellQuote(commandLine)}`,
};

/** Lines of a submit description, `--`, options for the command. */
function submitWords(spec: AttemptSpec): string[] {
  const { cpus, memoryMb, diskKb, gpus, walltimeSeconds, wholeHost, nodes } = spec.resources;
  const { queue, project, extraArgs } = spec.batch;
  const text = (value: string): string => `"${value.replace(/[^\w.@-]/g, '_')}"`;
  return [
    // The parallel universe goes to its default site, like the vanilla universe.
    `universe = ${nodes === undefined ? 'vanilla' : 'parallel'}`,
    ...(nodes === undefined ? [] : [`machine_count = ${nodes.count}`, `ranks_per_node = ${nodes.ranks}`]),
    'executable = /bin/sh',
    'transfer_executable = False',
    'should_transfer_files = NO',
    'initialdir = /',
    'notification = Never',
    `description = ${spec.title.replace(/[^\w .-]/g, '_')}`,
    `request_cpus = ${Math.max(1, Math.ceil(cpus))}`,
    ...(memoryMb === undefined ? [] : [`request_memory = ${Math.ceil(memoryMb)}`]),
    ...(diskKb === undefined ? [] : [`request_disk = ${Math.ceil(diskKb)}`]),
    ...(gpus ? [`request_gpus = ${gpus}`] : []),
    ...(wholeHost ? ['+WholeNodes = True'] : []),
    ...(queue === undefined ? [] : [`+BatchQueue = ${text(queue)}`]),
    ...(project === undefined ? [] : [`+BatchProject = ${text(project)}`]),
    ...(walltimeSeconds === undefined ? [] : [`+BatchRuntime = ${Math.max(1, Math.ceil(walltimeSeconds))}`]),
    `periodic_remove = ${removals(walltimeSeconds).join(' || ')}`,
    '--',
    ...extraArgs,
  ];
}

/**
 * Nothing else limits the time of plain processes there. A job that a site ended is held there; after ten minutes we
 * have surely read why.
 */
function removals(walltimeSeconds: number | undefined): string[] {
  const expired = `(JobStatus == 5 && NumJobStarts > 0 && ${SITE_ENDED} && time() - EnteredCurrentStatus > 600)`;
  if (walltimeSeconds === undefined) return [expired];
  const seconds = Math.max(1, Math.ceil(walltimeSeconds)) + GRACE_S;
  return [expired, `(JobStatus == 2 && time() - JobCurrentStartDate > ${seconds})`];
}

/** A grace period in seconds: a site with limits of its own then ends the job first and says why. */
const GRACE_S = 5;

/** HoldReasonCode of a job that a site ended (there, src/site/causes.ts). */
const CAUSES: Readonly<Record<string, Account['by']>> = {
  '6': 'cannot-start',
  '34': 'out-of-memory',
  '35': 'vanished',
  '46': 'timeout',
};
const SITE_ENDED = `member(HoldReasonCode, {${Object.keys(CAUSES).join(', ')}, 37})`;

function causeOf(code: string, message: string): Account['by'] | undefined {
  if (code === '35') {
    if (/preempted/.test(message)) return 'preempted';
    return /node .*failed|booted/.test(message) ? 'node-fail' : 'vanished';
  }
  if (code === '37') return /cancelled at the site/.test(message) ? 'cancelled' : undefined;
  return CAUSES[code];
}

/** Exit statuses of ours (src/errors.ts) with which nothing was submitted; after others, the job is searched for. */
const NEVER: ReadonlySet<number> = new Set([2, 65, 66, 68, 73, 76, 77, 78]);

function refusalOf(status: number, text: string): Refusal | 'unclear' {
  const lines = text.split('\n').map((line) => line.replace(/^gryphus: /, '').trim());
  const message =
    lines
      .filter((line) => line !== '')
      .slice(0, 3)
      .join('; ') || 'gryphus submit failed without a message';
  if (status === 127) {
    return { kind: 'never', code: 'site-refused', message: `gryphus was not found at the site: ${message}` };
  }
  return NEVER.has(status) ? { kind: 'never', code: 'site-refused', message } : 'unclear';
}

/** `STATUS STARTS HOLDCODE SUBCODE HOST WORDS`, like HTCondor's; a removed job still has to be stopped. */
function queueEntry(rest: string): QueueEntry {
  const [status, , code = '', , , ...more] = rest.split(' ');
  const message = more.join(' ');
  if (status === '3') return { is: 'unclear', message: 'it is being removed' };
  const cause = status === '5' ? causeOf(code, message) : undefined;
  return cause === undefined ? condor.queueEntry(rest) : { is: 'ended', by: cause, message };
}

/** Like HTCondor's history, but a job that was held first has `held CODE REASON` in place of its removal's reason. */
function accountOf(line: string): Account | undefined {
  const account = condor.accountOf?.(line);
  const [, code = '', message = ''] = / held (\d+) (.*)$/.exec(line) ?? [];
  if (account !== undefined && code === '' && /PeriodicRemove/i.test(line)) {
    return { ...account, by: 'timeout', message: 'it exceeded the run time that it requested' };
  }
  const by = causeOf(code, message);
  return account === undefined || by === undefined ? account : { ...account, by, message };
}
