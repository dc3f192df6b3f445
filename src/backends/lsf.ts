import type { AttemptSpec, Refusal } from '../site/contract.ts';
import type { Account, Backend, QueueEntry } from './contract.ts';
import { coresOf } from './cores.ts';

/**
 * LSF driven by its commands (lsf.sh); from IBM Spectrum LSF 10.1's command reference. `bjobs -o` exists since 9.1.3.
 */
export const lsf: Backend = {
  name: 'lsf',
  shell: ['lsf.sh', 'job-script.sh'],
  detect: 'command -v bsub >/dev/null 2>&1 && look lsf "$(bounded 20 bsub -V 2>&1 </dev/null)" bqueues',
  patience: { lookEvery: 30_000, lookAgain: 1000, lost: 12_000, lag: 30_000, verdict: 5000, closing: 5000 },
  arrays: true,
  accounts: true,
  submitWords,
  idOf: (answer) => /^Job <(\d+(?:\[\d+\])?)> is submitted to /.exec(answer)?.[1],
  refusalOf: lsfRefusal,
  queueEntry,
  accountOf,
  capacityOf: coresOf,
};

/** A slot is a core; `ptile` is their number on each host. */
function slotWords(slots: number, hosts: number): string[] {
  if (hosts > 1) return ['-n', String(slots * hosts), '-R', `span[ptile=${slots}]`];
  return slots === 1 ? [] : ['-n', String(slots), '-R', 'span[hosts=1]'];
}

function submitWords(spec: AttemptSpec): string[] {
  const { cpus, memoryMb, diskKb, gpus, walltimeSeconds, wholeHost, nodes } = spec.resources;
  const { queue, project, extraArgs } = spec.batch;
  const slots = Math.max(1, Math.ceil(cpus));
  const usage = [
    ...(memoryMb === undefined ? [] : [`mem=${Math.ceil(memoryMb)}MB`]),
    ...(diskKb === undefined ? [] : [`tmp=${Math.ceil(diskKb / 1024)}MB`]),
  ];
  return [
    ...slotWords(slots, nodes?.count ?? 1),
    ...(usage.length === 0 ? [] : ['-R', `rusage[${usage.join(',')}]`]),
    ...(wholeHost ? ['-x'] : []),
    ...(gpus ? ['-gpu', `num=${gpus}`] : []),
    // LSF counts whole minutes.
    ...(walltimeSeconds === undefined ? [] : ['-W', String(Math.max(1, Math.ceil(walltimeSeconds / 60)))]),
    ...(queue === undefined ? [] : ['-q', queue]),
    ...(project === undefined ? [] : ['-P', project]),
    ...extraArgs,
  ];
}

const LATER =
  /threshold reached|job limit|limit has been reached|LSF is down|Cannot connect to LSF|Failed in an LSF library call|temporarily|Queue has been closed|No space left|Disk quota exceeded/i;

/** The answer was lost; the job may be there. */
const UNCLEAR = /sending\/receiving a message|Connection reset|Broken pipe/i;
/** The site takes no more jobs for now. */
const FULL = /threshold reached|job limit|limit has been reached/i;
/** When LSF is down or a threshold is reached, bsub retries until we stop it, so it may have got through. */
export function lsfRefusal(status: number, text: string): Refusal | 'unclear' {
  const message = sentence(text);
  if (status === 127)
    return { kind: 'never', code: 'site-refused', message: `bsub was not found at the site: ${message}` };
  if (status === 124 || status === 137 || UNCLEAR.test(text)) return 'unclear';
  if (LATER.test(text)) return { kind: 'later', code: FULL.test(text) ? 'site-full' : 'site-busy', message };
  if (/not submitted|Bad argument|illegal option|^Usage/im.test(text)) {
    return { kind: 'never', code: 'site-refused', message };
  }
  return 'unclear';
}

function sentence(message: string): string {
  const usage = message.search(/^Usage:/m);
  const lines = (usage > 0 ? message.slice(0, usage) : message)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return lines.length === 0 ? 'bsub failed without a message' : [...new Set(lines)].slice(-3).join('; ');
}

/** `STAT|EXIT_CODE|EXEC_HOST|EXIT_REASON|PEND_REASON`; an empty field is a dash. */
function queueEntry(rest: string): QueueEntry {
  const [state = '', exit = '', hosts = '', reason = '', ...more] = rest
    .split('|')
    .map((field) => (field === '-' ? '' : field));
  const why = more.join('|');
  switch (state) {
    case 'PEND':
    case 'PROV':
    case 'WAIT':
    case 'FWD_PEND':
      return { is: 'waiting', message: why || state };
    case 'PSUSP':
      return { is: 'held', message: why || 'suspended while pending' };
    case 'RUN': {
      // `4*host1:host2`
      const host = hosts.split(':')[0]?.replace(/^\d+\*/, '') ?? '';
      return host === '' ? { is: 'running' } : { is: 'running', host };
    }
    case 'USUSP':
    case 'SSUSP':
      return { is: 'suspended', message: why || state };
    case 'DONE':
      return { is: 'ended', by: 'itself', message: state };
    case 'EXIT':
      // It was killed while pending, so no host is named; older releases of LSF give no reason.
      if (exit === '' && hosts === '' && reason === '')
        return { is: 'ended', by: 'cancelled', message: 'killed while pending' };
      return { is: 'ended', by: causeOf(reason), message: [`EXIT ${exit}`, reason].filter(Boolean).join(': ') };
    default:
      return { is: 'unclear', message: rest };
  }
}

/** `ID|NAME|Completed <exit>; TERM_…: …` from bacct -l. */
function accountOf(line: string): Account | undefined {
  const [id = '', name = '', ...more] = line.split('|');
  const message = more.join('|');
  if (!/^\d+(\[\d+\])?$/.test(id) || !message.startsWith('Completed <')) return undefined;
  const key = /^gryphus\.(.+)\.\d+$/.exec(name)?.[1];
  return { id, by: causeOf(message), message, ...(key === undefined ? {} : { key }) };
}

/** Termination reasons (Administering IBM Spectrum LSF, "Termination reasons displayed by bacct, bhist, and bjobs"). */
const CAUSES: Readonly<Record<string, Account['by']>> = {
  ADMIN: 'cancelled',
  OWNER: 'cancelled',
  FORCE_ADMIN: 'cancelled',
  FORCE_OWNER: 'cancelled',
  BUCKET_KILL: 'cancelled',
  EXTERNAL_SIGNAL: 'cancelled',
  REMOVE_HUNG_JOB: 'cancelled',
  CPULIMIT: 'timeout',
  RUNLIMIT: 'timeout',
  DEADLINE: 'deadline',
  WINDOW: 'deadline',
  MEMLIMIT: 'out-of-memory',
  SWAP: 'out-of-memory',
  PROCESSLIMIT: 'cancelled',
  THREADLIMIT: 'cancelled',
  PREEMPT: 'preempted',
  LOAD: 'preempted',
  OTHER: 'preempted',
  REQUEUE_ADMIN: 'preempted',
  REQUEUE_OWNER: 'preempted',
  REQUEUE_RC: 'preempted',
  RC: 'node-fail',
  ZOMBIE: 'node-fail',
  RMS: 'node-fail',
  CWD_NOTEXIST: 'cannot-start',
  PRE_EXEC_FAIL: 'cannot-start',
};

function causeOf(message: string): Account['by'] {
  const found = /TERM_([A-Z_]+)/.exec(message)?.[1];
  return found === undefined ? 'itself' : (CAUSES[found] ?? 'vanished');
}
