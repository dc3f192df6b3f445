import type { JobId } from '../../job/ids.ts';
import type { UserLogEvent } from '../../user-log/event.ts';

/** The jobs to wait for: all in the log, a cluster, or one job. */
export interface WantedEnds {
  readonly cluster?: number;
  readonly proc?: number;
}

/** What `condor_wait` tracks about a log. */
export class LogProgress {
  readonly #wanted: WantedEnds;
  readonly #alive = new Set<string>();
  readonly #ended = new Set<string>();

  /** `expected`: jobs whose ends are still to come, although the log may not have their submits yet. */
  constructor(wanted: WantedEnds = {}, expected: Iterable<JobId> = []) {
    this.#wanted = wanted;
    for (const id of expected) if (this.concerns(id)) this.#alive.add(`${id.cluster}.${id.proc}`);
  }

  concerns(id: JobId): boolean {
    const { cluster, proc } = this.#wanted;
    return (cluster === undefined || cluster === id.cluster) && (proc === undefined || proc === id.proc);
  }

  take(event: UserLogEvent): void {
    if (!this.concerns(event)) return;
    const id = `${event.cluster}.${event.proc}`;
    if (event.type === 'terminated' || event.type === 'aborted') {
      this.#alive.delete(id);
      this.#ended.add(id);
    } else if (!this.#ended.has(id) || event.type === 'submit') {
      this.#alive.add(id);
      this.#ended.delete(id);
    }
  }

  /** Whether at least one job was seen, and all seen jobs have ended. */
  get allDone(): boolean {
    return this.#alive.size === 0 && this.#ended.size > 0;
  }

  get ended(): number {
    return this.#ended.size;
  }
}

/** The line of `-status` for an event, if it has one. */
export function statusLine(event: UserLogEvent): string | undefined {
  const id = `${event.cluster}.${event.proc}.${event.subproc ?? 0}`;
  if (event.type === 'submit') return `${id} submitted`;
  if (event.type === 'execute') return `${id} executing on host ${event.host}`;
  if (event.type === 'terminated') return `${id} completed`;
  if (event.type === 'aborted') return `${id} removed`;
  return event.type === 'held' ? `${id} held: ${event.reason}` : undefined;
}
