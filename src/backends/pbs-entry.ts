import type { Account, QueueEntry } from './contract.ts';

/** Letters of job_state in the PBS family (qstat(1B)). */
const LIVE: Readonly<Record<string, 'waiting' | 'running' | 'suspended' | 'held'>> = {
  Q: 'waiting',
  T: 'waiting',
  W: 'waiting',
  M: 'waiting',
  R: 'running',
  E: 'running',
  B: 'running',
  H: 'held',
  S: 'suspended',
  U: 'suspended',
};

interface Fields {
  readonly state: string;
  readonly substate: string;
  readonly exit: string;
  readonly host: string;
  /** The time limit in force, `[[HH:]MM:]SS`. */
  readonly walltime: string;
  readonly comment: string;
}

/** `STATE|SUBSTATE|EXIT|HOST|WALLTIME|COMMENT` from `qstat -f`. */
export function fieldsOf(rest: string): Fields {
  const [state = '', substate = '', exit = '', host = '', walltime = '', ...comment] = rest.split('|');
  return { state, substate, exit, host: host.split('/')[0] ?? '', walltime, comment: comment.join('|') };
}

export function pbsEntry(rest: string, endOf: (fields: Fields) => Account['by']): QueueEntry {
  const fields = fieldsOf(rest);
  const message = fields.comment === '' ? (NAMES[fields.state] ?? fields.state) : fields.comment;
  const live = LIVE[fields.state];
  if (live === 'running') {
    const limit = secondsOf(fields.walltime);
    return {
      is: 'running',
      ...(fields.host === '' ? {} : { host: fields.host }),
      ...(limit === undefined ? {} : { limit }),
      ...(isEnding(fields) ? { ending: { by: endOf(fields), message: fields.comment } } : {}),
    };
  }
  // A job too big for every node stays queued, and only its comment says so.
  if (live === 'waiting') return { is: fields.comment.startsWith('Can Never Run') ? 'held' : 'waiting', message };
  if (live !== undefined) return { is: live, message };
  if (fields.state === 'F' || fields.state === 'C' || fields.state === 'X') {
    return { is: 'ended', by: endOf(fields), message: endMessage(fields) };
  }
  return { is: 'unclear', message: rest };
}
function secondsOf(walltime: string): number | undefined {
  if (!/^\d+(:\d+){0,2}$/.test(walltime)) return undefined;
  return walltime.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
}
/**
 * A job that was told to end runs on for some seconds. Its comment says so at once, its substate says if it will be
 * rerun, and PBS sets a status of its own when the job exits.
 */
function isEnding({ comment, exit, substate }: Fields): boolean {
  return DELETED.test(comment) || RERUN.test(substate) || exit.startsWith('-');
}
/** Substates of qrerun, and of preemption by requeuing. */
export const RERUN = /^6[0-3]$/;
/** What qdel appends to the comment. */
export const DELETED = / and terminated( by \S+)?$/;
const NAMES: Readonly<Record<string, string>> = {
  Q: 'queued',
  H: 'held',
  W: 'waiting for its start time',
  S: 'suspended',
};

/** A line `TAG ID STATE|…` of the history; undefined if the job has not ended. */
export function pbsAccount(line: string, endOf: (fields: Fields) => Account['by']): Account | undefined {
  const [tag = '', id = '', ...rest] = line.split(' ');
  const fields = fieldsOf(rest.join(' '));
  if (!/^[FCX]$/.test(fields.state) || id === '') return undefined;
  const key = /^gryphus\.(.+)\.\d+$/.exec(tag)?.[1];
  return { id, by: endOf(fields), message: endMessage(fields), ...(key === undefined ? {} : { key }) };
}

function endMessage({ state, exit, comment }: Fields): string {
  const never = state === 'X' ? 'it has finished' : 'it never ran';
  const status = exit === '' ? never : `exit status ${exit}`;
  // Torque puts this comment on every job that started.
  return comment === '' || comment.startsWith('Job started on ') ? status : `${comment} (${status})`;
}
