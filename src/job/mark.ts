/**
 * How far a queue has progressed. A queue has one life per run of its Redis. A site stores the last mark that it was
 * told, which exposes an older copy of the queue, such as a restored backup.
 */
export interface QueueMark {
  /** Counts from 1. */
  readonly life: number;
  /** That life's unique name, because two copies of one queue have different lives with the same number. */
  readonly run: string;
  /** The number of events in the queue so far. */
  readonly events: number;
  /** The last cluster id assigned. */
  readonly cluster: number;
}

const MARK = /^(\d{1,15}):([A-Za-z0-9]{1,64}):(\d{1,15}):(\d{1,15})$/;

export function formatMark({ life, run, events, cluster }: QueueMark): string {
  return `${life}:${run}:${events}:${cluster}`;
}

/** `undefined` if the text is not a mark. */
export function parseMark(text: string): QueueMark | undefined {
  const [, life, run, events, cluster] = MARK.exec(text) ?? [];
  if (run === undefined) return undefined;
  return { life: Number(life), run, events: Number(events), cluster: Number(cluster) };
}
