import { halt } from './halt.ts';
import type { Run } from './run.ts';
import { saveNow } from './save-now.ts';
import type { StartdOptions } from './startd-options.ts';

/**
 * Suspends a run (`still`) for its user or for the owner of its machine, or lets it go on if neither of them wants it
 * suspended any more.
 */
export function suspend(
  run: Run | undefined,
  still: boolean,
  by: 'user' | 'owner',
  { owner, say }: Pick<StartdOptions, 'owner' | 'say'>,
): void {
  if (!run || run.stopping || run.isOver || (run.phase !== 'running' && run.phase !== 'suspended')) return;
  if (by === 'user') owner?.noteUser(run, still);
  if (!still && (owner?.isHeldByOwner(run) || owner?.isHeldByUser(run))) return;
  halt(run, still);
  const phase = still ? 'suspended' : 'running';
  if (run.phase === phase) return;
  run.phase = phase;
  say({ t: still ? 'suspended' : 'resumed', key: run.key });
}

/** Carries out what a user asks of a running job. */
export function userOrder(
  run: Run | undefined,
  order: 'suspend' | 'resume' | 'checkpoint',
  means: StartdOptions,
): void {
  if (order !== 'checkpoint') suspend(run, order === 'suspend', 'user', means);
  else if (run && !run.stopping && !run.isOver && (run.phase === 'running' || run.phase === 'suspended'))
    saveNow(run, 'user', means);
}

/** An earlier worker left it, and had suspended it: it stays so, until its user or its owner says otherwise. */
export function stillSuspended(run: Run, owner: StartdOptions['owner']): void {
  if (run.phase !== 'running' || run.isOver || !owner?.wasSuspended(run)) return;
  halt(run, true);
  run.phase = 'suspended';
}
