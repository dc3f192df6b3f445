import type { AttrTexts } from '../../../job/attrs.ts';
import { CHECKPOINT_ENGINES, type CheckpointEngineName, engineAttributes } from '../../../job/checkpoint-engines.ts';
import { quoted } from '../../../job/values.ts';
import type { CheckpointHelper } from '../../host/checkpoint-helper.ts';
import { findCriu } from './criu.ts';
import type { CheckpointEngine } from './engine.ts';
import { gryphusEngine } from './gryphus.ts';

/** How each engine is found on this machine, or why it is not there: a sentence. */
const FIND: Readonly<
  Record<CheckpointEngineName, (helper: CheckpointHelper, why: string) => Promise<CheckpointEngine | string>>
> = {
  gryphus: async (helper, why) => (helper.program === undefined ? why : gryphusEngine(helper.program, helper)),
  criu: findCriu,
};
const NOT_OFFERED = 'the owner of the machine does not offer it (pool.checkpoint_engines)';

/** The engines of a machine. */
export interface CheckpointEngines {
  /** What the machine's ad says of them. */
  readonly ad: AttrTexts;
  /** One of them, or why there is none: a sentence. */
  readonly named: (name: CheckpointEngineName) => CheckpointEngine | string;
}

/** Looks for the engines that the machine's owner offers; each has to checkpoint and restore a small program. */
export async function findEngines(
  offered: readonly string[] = CHECKPOINT_ENGINES.slice(0, 1),
  helper: CheckpointHelper,
): Promise<CheckpointEngines> {
  const found = new Map<CheckpointEngineName, CheckpointEngine | string>();
  for (const name of CHECKPOINT_ENGINES)
    found.set(name, offered.includes(name) ? await FIND[name](helper, helper.reason) : NOT_OFFERED);
  return enginesOf((name) => found.get(name) ?? NOT_OFFERED);
}

/** A machine on which nothing is checkpointed, and why. */
export function noEngines(reason: string): CheckpointEngines {
  return enginesOf(() => reason);
}

function enginesOf(named: CheckpointEngines['named']): CheckpointEngines {
  const ad: Record<string, string> = {};
  const working: string[] = [];
  for (const name of CHECKPOINT_ENGINES) {
    const engine = named(name);
    const { platform, reason } = engineAttributes(name);
    if (typeof engine === 'string') ad[reason] = quoted(engine);
    else ad[platform] = quoted(engine.platform);
    if (typeof engine !== 'string') working.push(name);
  }
  // HTCondor has no such attributes; HasCheckpoint is that of the engine that jobs get which name none.
  ad['HasCheckpoint'] = String(working.includes(CHECKPOINT_ENGINES[0]));
  ad['CheckpointEngines'] = quoted(working.join(','));
  return { ad, named };
}
