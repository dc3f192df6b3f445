import type { Accounts } from './accounts.ts';
import type { CheckpointEngines } from './engines/engines.ts';
import type { NativeHelper } from '../host/remote-io-helper.ts';
import type { Cgroups } from './cgroups.ts';
import type { Containers } from './containers.ts';
import type { Means } from './stage.ts';
import type { OwnerControl } from './owner-control.ts';
import type { FromWorker } from '../wire/wire.ts';
import type { ClaimableMachine, Scripts } from './worker-claims.ts';

/** The options of a worker's Startd. */
export interface StartdOptions extends Means {
  /** The worker's own directory, with `jobs/` and `cache/`. */
  readonly dir: string;
  readonly machine: ClaimableMachine;
  /** The most disk space the worker may use, in KB; default: all. */
  readonly diskKb?: number;
  /** The part of the worker's environment that jobs see. */
  readonly env: NodeJS.ProcessEnv;
  readonly scripts: Scripts;
  /** A task that runs longer than this keeps no others waiting behind it, in milliseconds; default 100. */
  readonly slowMs?: number;
  readonly containers: Containers;
  /** What checkpoints jobs. */
  readonly checkpoints?: CheckpointEngines | undefined;
  /** What answers jobs' calls about files at home. */
  readonly remoteIo?: NativeHelper | undefined;
  /** The control groups in which jobs run, if the worker may create them. */
  readonly groups?: Cgroups | undefined;
  /** Under whose accounts jobs run; without it, the worker's own. */
  readonly accounts?: Accounts | undefined;
  /** The policy of the machine's owner. */
  readonly owner?: Pick<OwnerControl, 'refusal' | 'wasSuspended' | 'isHeldByOwner' | 'isHeldByUser' | 'noteUser'>;
  /** `unhurried`: the message may be delayed briefly. */
  readonly say: (message: FromWorker, bytes?: Uint8Array, unhurried?: boolean) => void;
  readonly log: (message: string) => void;
}
