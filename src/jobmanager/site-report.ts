import type { Backend } from '../backends/contract.ts';
import { type AttemptKey, parseAttemptKey } from '../job/ids.ts';
import type { AuditJob, AuditRecord, OtherAgent, SiteAudit, SiteStep } from '../site/audit.ts';
import type { SiteAnswer } from './answer.ts';
import { percentDecode } from '../site/escape.ts';

export function readAudit(answer: SiteAnswer, backend: Backend): SiteAudit {
  const records: AuditRecord[] = [];
  const queued: AuditJob[] = [];
  let queueError: string | undefined;
  let content = { files: 0, kb: 0 };
  const others: OtherAgent[] = [];
  for (const { kind, rest } of answer.lines) {
    const words = rest.split(' ');
    const last = records.at(-1);
    if (kind === 'job') records.push(recordOf(words));
    else if (kind === 'queued') queued.push(jobOf(words, backend));
    else if (kind === 'queue' && words[0] !== '0') queueError = percentDecode(words[1] ?? '').trim() || 'no answer';
    else if (kind === 'content') content = { files: Number(words[0]), kb: Number(words[1]) };
    else if (kind === 'other') others.push(...otherOf(words));
    else if (last !== undefined) records[records.length - 1] = { ...last, ...detail(kind, rest, last, backend) };
  }
  return { records, queued, queueError, content, others };
}

function otherOf([agent = '', ...numbers]: string[]): OtherAgent[] {
  const [attempts = 0, ended = 0, oldest = 0, newest = 0] = numbers.map((text) =>
    /^\d{1,15}$/.test(text) ? Number(text) : 0,
  );
  return /^[A-Za-z0-9_-]{1,64}$/.test(agent) ? [{ agent, attempts, ended, oldest, newest }] : [];
}

function recordOf([key = '', n = '0', flags = '']: string[]): AuditRecord {
  const state = flags.includes('c') ? 'cancelled' : n === '0' ? 'prepared' : 'submitted';
  return { key: key as AttemptKey, submission: Number(n), batchId: undefined, state };
}

function detail(kind: string, rest: string, last: AuditRecord, backend: Backend): Partial<AuditRecord> {
  if (kind === 'id') return { batchId: backend.idOf(rest) };
  if (kind === 'exit') return { state: 'ended' };
  if (last.state === 'cancelled') return {};
  if (kind === 'owner') return { state: 'started' };
  return kind === 'fenced' ? { state: 'fenced' } : {};
}

function jobOf([tag = '', batchId = '', ...words]: string[], backend: Backend): AuditJob {
  const found = /^gryphus\.(.+)\.(\d+)$/.exec(tag);
  const key = found?.[1] !== undefined && parseAttemptKey(found[1]) ? (found[1] as AttemptKey) : undefined;
  return {
    tag,
    key,
    submission: Number(found?.[2] ?? 0),
    batchId,
    over: backend.queueEntry(words.join(' ')).is === 'ended',
  };
}

const REMEDIES: Readonly<Record<string, string>> = {
  home: "Set a writable directory: `scratch` in the site's file.",
  disk: "Free some space there, or set another directory: `scratch` in the site's file.",
  exec: "Set a directory that is not mounted noexec: `scratch` in the site's file.",
  awk: 'Install awk there, or put it into the PATH of a non-interactive shell (`prelude`).',
  sha256: 'Install sha256sum (coreutils) there: files cannot be verified without it.',
  bounded: 'Install timeout (coreutils) there: without it, a batch system that hangs would hang Gryphus.',
  batch:
    'Make its commands available in a non-interactive shell, for example with `prelude = "module load slurm"` or `prelude = "export SLURM_CONF=…"`, in the site\'s file.',
  'named-queue': "Name a queue that exists there and accepts jobs: `queue` in the site's file.",
  clock: 'Synchronize both clocks with a time server: credentials are valid only for a period.',
  queue:
    'Check whether the batch system is running: its queue command does not answer. Plain processes need none: `batch = "fork"` in the site\'s file.',
};

/** How many seconds two clocks may differ: beyond that, proxies look expired or not yet valid. */
const CLOCKS_APART = 300;

/** `now`: Unix seconds. */
export function readSteps(answer: SiteAnswer, noise: string, backend: Backend, now: number): SiteStep[] {
  const steps = answer.lines
    .filter((line) => line.kind === 'step')
    .map(({ rest }) => {
      const [name = '', verdict, encoded = ''] = rest.split(' ');
      const said = percentDecode(encoded).trim();
      const found = verdict === 'ok' ? said : undefined;
      const { ok, message } = READ[name]?.(found, backend, now) ?? { ok: found !== undefined, message: said };
      const remedy = REMEDIES[name];
      return {
        name,
        ok,
        message: message === '' && !ok ? 'no' : message,
        ...(ok || remedy === undefined ? {} : { remedy }),
      };
    });
  if (noise === '') return steps;
  const remedy = 'Make the log-in scripts there print only in interactive shells.';
  return [...steps, { name: 'quiet', ok: true, message: `its log-in scripts print: ${noise.slice(0, 200)}`, remedy }];
}

type Reading = (found: string | undefined, backend: Backend, now: number) => { ok: boolean; message: string };

/** Steps whose message is composed here; `found`: what the site said, `undefined` if it found nothing. */
const READ: Readonly<Record<string, Reading>> = {
  cores: (found, backend) => {
    const cores = backend.capacityOf?.(found ?? '');
    const message = cores ? `${cores.freeCpus} of ${cores.cpus} free` : 'not reported';
    return { ok: true, message };
  },
  launchers: (found) => ({
    ok: true,
    message: found?.replace(/;\s*$/, '') ?? 'none: only jobs without MPI can run there',
  }),
  accounting: (found) => ({ ok: true, message: found ?? 'none: how a job ended is known only from its exit record' }),
  clock: (found, _, now) => {
    const apart = Math.round(Number(found ?? now) - now);
    const message = Math.abs(apart) < 3 ? 'as ours' : `${Math.abs(apart)} s ${apart > 0 ? 'before' : 'behind'} ours`;
    return { ok: Math.abs(apart) <= CLOCKS_APART, message };
  },
};
