import { probeProgram } from './probe-program.ts';

/** gryphus-helper, and whether it works on this machine. */
export interface CheckpointHelper {
  /** Its path; `undefined` if it does not work here. */
  readonly program: string | undefined;
  /** What images made here need, as in the machine's ad (CheckpointPlatform); '' without a program. */
  readonly platform: string;
  /** Why it does not work: a sentence; '' if it does. */
  readonly reason: string;
}

/** Looks for the helper in these directories, and whether it works here. */
export function findCheckpointHelper(...dirs: readonly string[]): CheckpointHelper {
  const probed = probeProgram('gryphus-helper', dirs);
  if (probed.program === undefined) return { program: undefined, platform: '', reason: probed.reason };
  return { program: probed.program, platform: probed.said, reason: '' };
}
