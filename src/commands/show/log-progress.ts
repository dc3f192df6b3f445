import type { JobId } from '../../job/ids.ts';
import type { UserLogEvent } from '../../job/user-log.ts';

/** Which jobs a wait is for: all of the log, a cluster, or one job. */
export interface Wanted {
  readonly cluster?: number;
  readonly proc?: number;
}

/** What `condor_wait` keeps of a log. */
export class LogProgress {
  readonly #wanted: Wanted;
  readonly #alive = new Set<string>();
  readonly #ended = new Set<string>();

  constructor(wanted: Wanted = {}) {
    this.#wanted = wanted;
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

  /** All jobs that were seen have ended, and at least one was. */
  get allDone(): boolean {
    return this.#alive.size === 0 && this.#ended.size > 0;
  }

  get ended(): number {
    return this.#ended.size;
  }
}

/** `-status`'s line of an event, where it has one. */
export function statusLine(event: UserLogEvent): string | undefined {
  const id = `${event.cluster}.${event.proc}.${event.subproc ?? 0}`;
  if (event.type === 'submit') return `${id} submitted`;
  if (event.type === 'execute') return `${id} executing on host ${event.host}`;
  if (event.type === 'terminated') return `${id} completed`;
  if (event.type === 'aborted') return `${id} removed`;
  return event.type === 'held' ? `${id} held: ${event.reason}` : undefined;
}
