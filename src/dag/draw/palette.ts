import { STATUS, STATUS_NAMES, type Status } from '../engine/status.ts';

export interface NodeLook {
  readonly fill: string;
  readonly stroke: string;
  readonly word: string;
}

/** The colours differ in lightness too, so that colour-blind readers can tell them apart. */
const LOOKS: Readonly<Record<Status, NodeLook>> = {
  [STATUS.notReady]: { fill: '#f4f4f5', stroke: '#a1a1aa', word: 'not ready' },
  [STATUS.ready]: { fill: '#ffffff', stroke: '#71717a', word: 'waiting' },
  [STATUS.preRun]: { fill: '#e0e7ff', stroke: '#6366f1', word: 'PRE script' },
  [STATUS.submitted]: { fill: '#bfdbfe', stroke: '#2563eb', word: 'in the queue' },
  [STATUS.postRun]: { fill: '#ddd6fe', stroke: '#7c3aed', word: 'POST script' },
  [STATUS.done]: { fill: '#bbf7d0', stroke: '#15803d', word: 'done' },
  [STATUS.error]: { fill: '#fca5a5', stroke: '#b91c1c', word: 'failed' },
  [STATUS.futile]: { fill: '#fde68a', stroke: '#b45309', word: 'cannot run' },
};

export function lookOf(status: number): NodeLook {
  return LOOKS[status as Status] ?? LOOKS[STATUS.ready];
}

/** The order of the legend. */
export const STATUSES: readonly Status[] = [5, 3, 2, 4, 1, 0, 6, 7];

export function statusClass(status: number): string {
  return (STATUS_NAMES[status as Status] ?? 'STATUS_READY').slice('STATUS_'.length).toLowerCase();
}
