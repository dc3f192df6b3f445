import type { QueueEvent } from '../job/events.ts';

const OTHERS = new Set(['hold', 'release', 'remove', 'takeback', 'adopted']);

/** Matches the text of every event that a GridManager reacts to, and of few others. */
export const MAY_CONCERN = new RegExp(
  `"event":"(?:${[...OTHERS, 'opened', 'withdraw'].join('|')})"|"type":"(?:submitted|materialized|routed|notice)"`,
);

/**
 * Whether the event is somebody else's action: a user's command, a submit, a route. Our own transitions wake their work
 * loops directly.
 */
export function isFromOutside(event: QueueEvent): boolean {
  if (event.type === 'transition') return OTHERS.has(event.event);
  if (event.type === 'candidate') return event.event === 'opened' || event.event === 'withdraw';
  return event.type === 'submitted' || event.type === 'materialized' || event.type === 'routed';
}
