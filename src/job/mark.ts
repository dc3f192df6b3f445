import { createHmac } from 'node:crypto';

/**
 * How far a queue has progressed. Each run of its Redis is one incarnation of a queue. A site stores the last mark that
 * it received, which exposes an older copy of the queue, such as a restored backup.
 */
export interface QueueMark {
  /** Counts from 1. */
  readonly incarnation: number;
  /** Its unique name, because two copies of one queue have different incarnations with the same number. */
  readonly run: string;
  /** The number of events in the queue so far. */
  readonly events: number;
  /** The last cluster id assigned. */
  readonly cluster: number;
}

/** The state directory that serves an agent. `gryphus recover` moves an agent to another one, with the next epoch. */
export interface Holder {
  /** Counts from 1. */
  readonly epoch: number;
  /** Letters and digits. */
  readonly name: string;
}

const MARK = /^(\d{1,15}):([A-Za-z0-9]{1,64}):(\d{1,15}):(\d{1,15}):([0-9a-f]{32})$/;

/** Signed, because any job at a site can write there: a forged mark would make the queue skip ids, or hold jobs. */
export function formatMark(mark: QueueMark, key: string): string {
  return `${plain(mark)}:${signature(mark, key)}`;
}

/** `undefined` if the text is not a mark that was signed with this key. */
export function parseMark(text: string, key: string): QueueMark | undefined {
  const [, incarnation, run, events, cluster, signed] = MARK.exec(text) ?? [];
  if (run === undefined) return undefined;
  const mark = { incarnation: Number(incarnation), run, events: Number(events), cluster: Number(cluster) };
  return signed === signature(mark, key) ? mark : undefined;
}

function plain({ incarnation, run, events, cluster }: QueueMark): string {
  return `${incarnation}:${run}:${events}:${cluster}`;
}

function signature(mark: QueueMark, key: string): string {
  return createHmac('sha256', key)
    .update(`mark ${plain(mark)}`)
    .digest('hex')
    .slice(0, 32);
}
