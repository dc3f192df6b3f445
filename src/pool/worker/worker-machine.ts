import { statSync } from 'node:fs';
import { asError } from '../../errors.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import { Cgroups } from './cgroups.ts';
import { machineAd, measure } from '../host/machine.ts';
import type { Size } from '../wire/wire.ts';
import { readWorkerConfig, type WorkerConfig } from '../wire/worker-config.ts';

export interface WorkerMachineOptions {
  readonly config: WorkerConfig;
  /** The configuration file; changes to it are followed. */
  readonly file: string;
  readonly instance: string;
  /** The worker's own environment. */
  readonly environment: NodeJS.ProcessEnv;
  readonly log: (message: string) => void;
}

/**
 * What a worker may use of its machine, and for which jobs. Sizes, START, RANK and limits follow the current
 * configuration file; its other entries are read only when the worker starts. A change does not affect jobs that are
 * already running.
 */
export class WorkerMachine {
  readonly #options: WorkerMachineOptions;
  readonly groups: Cgroups | undefined;
  #signature: string;
  size: Size;
  ad: AttrTexts;
  limitMemory: boolean;

  constructor(options: WorkerMachineOptions) {
    const { config, file, instance, environment } = options;
    this.#options = options;
    this.#signature = signatureOf(file);
    this.limitMemory = config.limitMemory === true;
    const { cgroups: policy = 'auto' } = config;
    this.groups = Cgroups.open({ policy, name: `gryphus-${instance}`, limitMemory: this.limitMemory });
    this.size = measure(config.dir, config, environment);
    this.ad = this.#adOf(config);
  }

  /** Rereads the configuration file if it has changed; true if the changes were applied. */
  look(): boolean {
    const { file, environment, log } = this.#options;
    const signature = signatureOf(file);
    if (signature === this.#signature) return false;
    this.#signature = signature;
    let config: WorkerConfig;
    try {
      config = readWorkerConfig(file);
    } catch (thrown) {
      log(`${asError(thrown).message} The previous settings stay in force.`);
      return false;
    }
    this.limitMemory = config.limitMemory === true;
    if (this.groups) this.groups.limitMemory = this.limitMemory;
    this.size = { ...measure(config.dir, config, environment), diskKb: this.size.diskKb };
    const ad = this.#adOf(config);
    const gone = Object.keys(this.ad).filter((name) => !Object.hasOwn(ad, name));
    this.ad = { ...Object.fromEntries(gone.map((name) => [name, null])), ...ad };
    log('its configuration has changed');
    return true;
  }

  #adOf({ name, site, fileSystemDomain, start, rank, attributes }: WorkerConfig): AttrTexts {
    const { instance } = this.#options;
    return machineAd(name, this.size, {
      GryphusSite: quoted(site),
      GryphusWorker: quoted(instance),
      FileSystemDomain: quoted(fileSystemDomain ?? instance),
      UidDomain: quoted(fileSystemDomain ?? instance),
      ...(start === undefined ? {} : { START: start }),
      ...(rank === undefined ? {} : { Rank: rank }),
      ...this.groups?.ad(),
      ...attributes,
    });
  }
}

/** Differs after each write. */
function signatureOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found ? `${found.ino}:${found.size}:${found.mtimeMs}` : '';
}
