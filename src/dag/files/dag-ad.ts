import { type Core, doneCount, nodeCount, readyCount, unreadyCount } from '../engine/core.ts';
import { unixSeconds } from '../times.ts';

/** The DAG's status as attributes of its manager's job (manual, "Status information for the DAG in a ClassAd"). */
export function dagAd(core: Core, now: number): Readonly<Record<string, string>> {
  const { counts, limits } = core;
  const running = counts.jobsSubmitted - counts.jobsCompleted - counts.idle;
  const values = {
    DAG_AdUpdateTime: unixSeconds(now),
    DAG_Status: core.dagStatus,
    DAG_InRecovery: 0,
    DAG_NodesTotal: nodeCount(core, true),
    DAG_NodesDone: doneCount(core, true),
    DAG_NodesPrerun: counts.pre,
    DAG_NodesQueued: counts.submitted,
    DAG_NodesPostrun: counts.post,
    DAG_NodesHoldrun: core.scripts.HOLD.running,
    DAG_NodesReady: readyCount(core),
    DAG_NodesUnready: unreadyCount(core),
    DAG_NodesFailed: counts.failed,
    DAG_NodesFutile: counts.futile,
    DAG_JobsSubmitted: counts.jobsSubmitted,
    DAG_JobsIdle: counts.idle - counts.held,
    DAG_JobsRunning: Math.max(0, running),
    DAG_JobsHeld: counts.held,
    DAG_JobsCompleted: counts.jobsCompleted,
    DAGMan_MaxJobs: limits.maxJobs,
    DAGMan_MaxIdle: limits.maxIdle,
    DAGMan_MaxPreScripts: limits.maxPre,
    DAGMan_MaxPostScripts: limits.maxPost,
    DAGMan_MaxHoldScripts: limits.maxHold,
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
}
