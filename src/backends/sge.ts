import type { AttemptSpec, Refusal } from '../site/contract.ts';
import type { Account, Backend, QueueEntry } from './contract.ts';
import { coresOf } from './cores.ts';

/** The Grid Engine family driven by its commands (sge.sh, sge-job.sh); facts from Son of Grid Engine 8.1.9. */
export const sge: Backend = {
  name: 'sge',
  shell: ['sge.sh', 'sge-job.sh'],
  detect: '[ "$qsub" = sge ] && look sge "$qsub_says" qconf -sh',
  lacks: { command: 'request_disk', instead: '-l scratch_free=10G' },
  // A qmaster that was killed comes back with all its jobs; its execution daemons may need a minute.
  patience: { lookEvery: 30_000, lookAgain: 1000, lost: 12_000, lag: 30_000, verdict: 5000, closing: 5000 },
  arrays: true,
  accounts: true,
  submitWords,
  // `-terse` prints the id; we add an array element's index: `3.1`.
  idOf: (answer) => /^\d+(\.\d+)?$/.exec(answer)?.[0],
  refusalOf,
  queueEntry,
  accountOf,
  capacityOf: coresOf,
};

/**
 * The first word is for sge.sh: `-`, or the number of slots, of one host unless `@NAME` of a parallel environment
 * follows, or `@=N`: the one that gives N slots of each host.
 */
function submitWords(spec: AttemptSpec): string[] {
  const { cpus, memoryMb, gpus, walltimeSeconds, wholeHost, nodes } = spec.resources;
  const { queue, project, parallelEnvironment, extraArgs } = spec.batch;
  const each = Math.max(1, Math.ceil(cpus));
  const hosts = nodes?.count ?? 1;
  const slots = hosts === 1 ? String(each) : `${each * hosts}@${parallelEnvironment ?? `=${each}`}`;
  const asks = extraArgs.join(' ');
  return [
    each * hosts === 1 || extraArgs.includes('-pe') ? '-' : slots,
    // mem_free is the whole host's. h_vmem limits address space per slot, and not every site can account for it.
    ...(memoryMb === undefined || /\bh_vmem=/.test(asks) ? [] : ['-l', `mem_free=${Math.ceil(memoryMb)}M`]),
    // The manual's example name for an exclusive resource (complex(5), EXCL).
    ...(wholeHost ? ['-l', 'exclusive=true'] : []),
    ...(gpus ? ['-l', `gpu=${gpus}`] : []),
    ...(walltimeSeconds === undefined ? [] : ['-l', `h_rt=${Math.max(1, Math.ceil(walltimeSeconds))}`]),
    ...(queue === undefined ? [] : ['-q', queue]),
    ...(project === undefined ? [] : ['-P', project]),
    ...extraArgs,
  ];
}

/** The qmaster was not reached, or a limit applies for now (qsub(1): status 25, may be accepted later). */
const LATER =
  /unable to send message to qmaster|unable to contact qmaster|got select error|jobs are allowed|max_u_jobs|max_jobs|resource quota|No space left|Disk quota exceeded/i;
/** The site takes no more jobs for now. */
const FULL = /jobs are allowed|max_u_jobs|max_jobs/i;
const UNCLEAR = /got read error|timeout|timed out|got no response|broken pipe/i;
const ANSWERED = /Unable to run job|invalid option|Unable to read script|not allowed|denied|Unknown option/i;

function refusalOf(status: number, text: string): Refusal | 'unclear' {
  const message = sentence(text);
  if (status === 127)
    return { kind: 'never', code: 'site-refused', message: `qsub was not found at the site: ${message}` };
  if (status === 124 || status === 137 || UNCLEAR.test(text)) return 'unclear';
  if (status === 25 || LATER.test(text))
    return { kind: 'later', code: FULL.test(text) ? 'site-full' : 'site-busy', message };
  return ANSWERED.test(text) ? { kind: 'never', code: 'site-refused', message } : 'unclear';
}

function sentence(message: string): string {
  const lines = message
    .split('\n')
    .map((line) => line.replace(/^(Unable to run job|qsub|error): /, '').trim())
    .filter((line) => line !== '' && line !== 'Exiting.');
  return lines.length === 0 ? 'qsub failed without a message' : [...new Set(lines)].slice(-3).join('; ');
}

/**
 * `STATE|QUEUE@HOST|WHY`. A state is letters (qstat(1)): d(eletion), E(rror), h(old), r(unning), R(estarted),
 * s, S, T, N (suspended by a person, by the queue, by its threshold, by preemption), t(ransferring), w(aiting), q(ueued).
 */
function queueEntry(rest: string): QueueEntry {
  const [state = '', queue = '', ...more] = rest.split('|');
  const why = more.join('|');
  const message = why === '' ? state : `${state}: ${why}`;
  if (!/^[dEhrRsSTNtwqP]+$/.test(state)) return { is: 'unclear', message: message || 'no state' };
  if (state.includes('w')) return { is: /[hE]/.test(state) ? 'held' : 'waiting', message };
  if (/[sSTNP]/.test(state)) return { is: 'suspended', message };
  if (!/[rt]/.test(state)) return { is: 'unclear', message };
  const host = queue.split('@')[1];
  return host === undefined || host === '' ? { is: 'running' } : { is: 'running', host };
}

/**
 * A qacct(1) record as `ID|NAME|FAILED|EXIT|START|END|HOST|MAXVMEM|SLOTS|CATEGORY`; the name holds our tag. Our job
 * script's status is below 128.
 */
function accountOf(line: string): Account | undefined {
  const [id = '', name = '', ...fields] = line.split('|');
  const [failed = '', exit = '', , end = '', , vmem = '', slots = '', ...category] = fields.map((one) =>
    one.replace(/\s+/g, ' '),
  );
  const code = Number(failed.split(/[ :]/)[0]);
  if (!/^\d+(\.\d+)?$/.test(id) || failed === '' || !Number.isInteger(code)) return undefined;
  const key = /^gryphus\.(.+)\.\d+$/.exec(name)?.[1];
  const of = { id, ...(key === undefined ? {} : { key }) };
  const by = causeOf(code, Number.parseInt(exit, 10), end);
  const message = code === 0 ? `exit ${exit}` : `failed ${failed}, exit ${exit}`;
  const memory = by === 'timeout' || by === 'cancelled' ? beyondMemory(vmem, slots, category.join('|')) : undefined;
  if (memory === undefined) return { ...of, by, message };
  return { ...of, by: 'out-of-memory', message: `${memory}; ${message}` };
}

/**
 * The code for a limit is the same for memory as for time, so the most memory that it had is compared with what it was
 * to have of each slot. Limits of the queue alone are not in the accounting.
 */
function beyondMemory(vmem: string, slots: string, category: string): string | undefined {
  const limit = /\bh_vmem=([\w.]+)/.exec(category)?.[1] ?? '';
  if (!(bytesOf(vmem) > bytesOf(limit) * Math.max(1, Number(slots) || 1))) return undefined;
  return `it used ${vmem} and was limited to h_vmem=${limit} for each slot, by batch_extra_submit_args or extra_args`;
}

/** `300M`, `1.5g`, `488.555MB`; NaN if it is no amount. Small letters are powers of 1000 (sge_types(1)). */
function bytesOf(text: string): number {
  const [, number = '', letter = ''] = /^([\d.]+)([kmgt]?)B?$/i.exec(text) ?? [];
  if (number === '') return Number.NaN;
  const unit = letter === letter.toUpperCase() ? 1024 : 1000;
  return Number(number) * unit ** ['', 'k', 'm', 'g', 't'].indexOf(letter.toLowerCase());
}

/** Codes of sge_status(5). */
function causeOf(failed: number, exit: number, end: string): Account['by'] {
  switch (failed) {
    case 0:
      return 'itself';
    case 37:
    case 44:
      // A limit of run time, CPU time or memory; the code does not say which.
      return 'timeout';
    case 25:
      return 'preempted';
    case 100:
      // Killed by qdel or by a limit of the host. USR1 and XCPU are the soft limits.
      return exit === 138 || exit === 152 ? 'timeout' : 'cancelled';
    case 18:
    case 19:
    case 21:
    case 22:
      return 'node-fail';
    default:
      return end === '-/-' || failed < 18 || (failed > 25 && failed < 37) ? 'cannot-start' : 'vanished';
  }
}
