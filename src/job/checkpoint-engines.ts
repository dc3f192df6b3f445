/** What writes and restores the images of jobs (`checkpoint_engine`); the first is our own, the default. */
export const CHECKPOINT_ENGINES = ['gryphus', 'criu'] as const;
export type CheckpointEngineName = (typeof CHECKPOINT_ENGINES)[number];

/** The attributes of a machine that say what an engine's images need, and why it has no such engine. */
export function engineAttributes(name: CheckpointEngineName): { readonly platform: string; readonly reason: string } {
  if (name === 'gryphus') return { platform: 'CheckpointPlatform', reason: 'HasCheckpointReason' };
  const word = name.charAt(0).toUpperCase() + name.slice(1);
  return { platform: `${word}CheckpointPlatform`, reason: `${word}CheckpointReason` };
}

/** The engine that a word names; `undefined` if there is no such engine. */
export function engineNamed(word: string): CheckpointEngineName | undefined {
  return CHECKPOINT_ENGINES.find((name) => name === word.toLowerCase());
}
