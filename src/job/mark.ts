/**
 * How far a queue is. It lives through lives, one for each run of its Redis; a site keeps the mark that it was told last, and
 * an older copy of the queue (a backup that was put back) is known by it.
 */
export interface QueueMark {
  /** Counts from 1. */
  readonly life: number;
  /** That life's own name: two copies of one queue live different lives of one number. */
  readonly run: string;
  /** Events that the queue has had. */
  readonly events: number;
  /** The last cluster id that was given. */
  readonly cluster: number;
}

const MARK = /^(\d{1,15}):([A-Za-z0-9]{1,64}):(\d{1,15}):(\d{1,15})$/;

export function formatMark({ life, run, events, cluster }: QueueMark): string {
  return `${life}:${run}:${events}:${cluster}`;
}

/** `undefined` where the text is none. */
export function parseMark(text: string): QueueMark | undefined {
  const [, life, run, events, cluster] = MARK.exec(text) ?? [];
  if (run === undefined) return undefined;
  return { life: Number(life), run, events: Number(events), cluster: Number(cluster) };
}
