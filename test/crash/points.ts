import type { CrashPoint } from '../../src/util/crash-point.ts';

/** Every crash point of our own processes; the type keeps the list complete. */
export const HERE: Readonly<Record<Exclude<CrashPoint, Unused>, 'run' | 'remove'>> = {
  'gm.before-take': 'run',
  'gm.saved-take': 'run',
  'gm.before-prepare': 'run',
  'jm.before-prepare': 'run',
  'jm.after-prepare': 'run',
  'gm.after-prepare': 'run',
  'gm.saved-prepare': 'run',
  'gm.before-commit': 'run',
  'jm.before-commit': 'run',
  'jm.after-commit': 'run',
  'gm.after-commit': 'run',
  'gm.saved-commit': 'run',
  'jm.before-poll': 'run',
  'jm.after-poll': 'run',
  'gm.after-poll': 'run',
  'gm.saved-poll': 'run',
  'gm.before-fetch': 'run',
  'jm.before-fetch': 'run',
  'jm.after-fetch': 'run',
  'gm.after-fetch': 'run',
  'gm.saved-fetch': 'run',
  'gm.before-decide': 'run',
  'gm.saved-decide': 'run',
  'gm.before-forget': 'run',
  'jm.before-forget': 'run',
  'jm.after-forget': 'run',
  'gm.after-forget': 'run',
  'gm.saved-forget': 'run',
  'gm.before-cancel': 'remove',
  'jm.before-cancel': 'remove',
  'jm.after-cancel': 'remove',
  'gm.after-cancel': 'remove',
  'gm.saved-cancel': 'remove',
};
/**
 * Steps that do not have this side (the type of a crash point is the product of sides and steps), those of flooded jobs
 * (flood.test.ts), and of proxies (delegation-ssh.test.ts).
 */
type Unused =
  // Walked by test/pool/checkpoint-crashes-slow.test.ts.
  | `checkpoint.${string}`
  // The pool is covered separately (test/pool).
  | `worker.${string}`
  // test/flock.
  | `flock.${string}`
  | `flock-lender.${string}`
  | `direct.${string}`
  | `inputs.${string}`
  // test/agent/backup.test.ts.
  | `restore.${string}`
  // test/agent/releases.test.ts.
  | `queue.${string}`
  | `central-manager.${string}`
  | 'gm.after-take'
  | `gm.${'before' | 'saved' | 'after'}-grant`
  | 'gm.before-poll'
  | 'gm.after-decide'
  | `gm.${'before' | 'after' | 'saved'}-${'reconcile' | 'delegate'}`
  | `jm.${'before' | 'after'}-${'take' | 'decide' | 'reconcile' | 'delegate'}`;
