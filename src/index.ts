export { Gryphus } from './client/gryphus.ts';
export type { DagClient } from './client/dag.ts';
export type * from './client/dag-types.ts';
export type * from './client/types.ts';
export { type ErrorCode, GryphusError } from './errors.ts';
export type { QueueEvent } from './job/events.ts';
export { formatJobId, type JobId, parseJobId } from './job/ids.ts';
export { JOB_STATUS, LIFE, type LifeEvent, type State } from './job/life.ts';
