import type { Cgroups } from './cgroups.ts';
import type { Containers } from './containers.ts';
import type { Means } from './stage.ts';
import type { FromWorker } from '../wire/wire.ts';
import type { MachineNow, Scripts } from './worker-claims.ts';

/** What a worker's machine is given. */
export interface StartdOptions extends Means {
  /** The worker's own directory: `jobs/`, `cache/`. */
  readonly dir: string;
  readonly machine: MachineNow;
  /** The most of its disk that is the worker's, KB; default: all. */
  readonly diskKb?: number;
  /** What jobs see of the worker's environment. */
  readonly env: NodeJS.ProcessEnv;
  readonly scripts: Scripts;
  /** What lasts for so long keeps nothing waiting behind it; default 100. */
  readonly slowMs?: number;
  readonly containers: Containers;
  /** In which jobs run, if there may be such. */
  readonly groups?: Cgroups | undefined;
  /** `unhurried`: a moment later is soon enough. */
  readonly say: (message: FromWorker, bytes?: Uint8Array, unhurried?: boolean) => void;
  readonly log: (message: string) => void;
}
