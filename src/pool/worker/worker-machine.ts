import { statSync } from 'node:fs';
import { asError } from '../../errors.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import type { NativeHelper } from '../host/remote-io-helper.ts';
import { javaAd } from '../host/java.ts';
import { Cgroups } from './cgroups.ts';
import { type CheckpointEngines, noEngines } from './engines/engines.ts';
import { machineAd, measure } from '../host/machine.ts';
import { offAt, type OwnerWord, ownerFile, readOwnerWord } from '../owner/owner-file.ts';
import { macrosInForce, sourcesInForce, textsInForce } from '../owner/in-force.ts';
import { Policy } from '../owner/policy.ts';
import { readRootPolicy, ROOT_POLICY_FILE, type RootPolicy } from '../owner/root-policy.ts';
import { resourceTexts } from '../wire/ads.ts';
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
  /** What checkpoints jobs. */
  readonly checkpoints?: CheckpointEngines | undefined;
  /** What answers jobs' calls about files at home. */
  readonly remoteIo?: NativeHelper | undefined;
  /** The administrator's file. */
  readonly rootPolicy?: string;
}

/** HTCondor's POLLING_INTERVAL, in seconds. */
const POLLING = 5;
/** Out of the pool because the administrator's file is wrong and never was right. */
const CLOSED: Pick<RootPolicy, 'off'> = { off: 'peaceful' };

/**
 * What a worker may use of its machine, and for which jobs. Sizes, the policy and limits follow the current
 * configuration file, the owner's word and the administrator's file, which wins; other entries are read only when the
 * worker starts. A change does not end jobs that are already running, unless the policy says so.
 */
export class WorkerMachine {
  readonly #options: WorkerMachineOptions;
  readonly groups: Cgroups | undefined;
  readonly #followed: readonly { readonly file: string; readonly changed: () => void | Promise<void> }[];
  readonly #signatures = new Map<string, string>();
  #config: WorkerConfig;
  #root: RootPolicy | undefined;
  #closed = false;
  #word: OwnerWord = {};
  #stale = false;
  /** START as it is advertised now, if the policy's own text is not. */
  #start: string | undefined;
  #policy: Policy;
  size: Size;
  ad: AttrTexts;
  limitMemory: boolean;

  constructor(options: WorkerMachineOptions) {
    const { config, file, instance } = options;
    this.#options = options;
    this.#config = config;
    this.limitMemory = config.limitMemory === true;
    const { cgroups: policy = 'auto' } = config;
    this.groups = Cgroups.open({ policy, name: `gryphus-${instance}`, limitMemory: this.limitMemory });
    this.#followed = [
      { file, changed: () => this.#readConfig() },
      { file: ownerFile(config.dir), changed: () => this.#readWord() },
      { file: this.#rootFile, changed: () => this.#readRoot() },
    ];
    this.#signatures.set(file, signatureOf(file));
    this.#readWord();
    this.#signatures.set(ownerFile(config.dir), signatureOf(ownerFile(config.dir)));
    this.size = this.#measure();
    this.#policy = this.#makePolicy();
    this.ad = this.#makeAd();
  }

  /** Reads the administrator's file, without which nothing may be offered. */
  async open(): Promise<this> {
    this.#signatures.set(this.#rootFile, signatureOf(this.#rootFile));
    await this.#readRoot();
    if (this.#stale) this.#renew();
    return this;
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** Attributes that only the policy looks at. */
  get macros(): AttrTexts {
    return macrosInForce(this.#config, this.#root);
  }

  /** Seconds. */
  get polling(): number {
    return this.#root?.polling ?? this.#config.polling ?? POLLING;
  }

  /** Under whose accounts jobs run, if the worker belongs to root. */
  get runAs(): string {
    return this.#config.runAs ?? 'owner';
  }

  /** The names of the sources of signs of the owner that count. */
  get idleSources(): ReadonlySet<string> {
    return sourcesInForce(this.#config, this.#root);
  }

  get ignoredTerminals(): readonly string[] {
    return [...(this.#config.ignoreTerminals ?? []), ...(this.#root?.ignoreTerminals ?? [])];
  }

  /** How its owner took it out of the pool. `now`: Unix seconds. */
  off(now: number): OwnerWord['off'] | undefined {
    const how = this.#closed ? CLOSED.off : this.#root?.off;
    if (how !== undefined) return { how, since: this.#rootSince };
    return offAt(this.#word, now);
  }

  get #rootSince(): number {
    return (statSync(this.#rootFile, { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1000;
  }

  /** Rereads the files that have changed; true if a change was applied. */
  look(): boolean {
    for (const { file, changed } of this.#followed) {
      const signature = signatureOf(file);
      if (signature === (this.#signatures.get(file) ?? '')) continue;
      this.#signatures.set(file, signature);
      void changed();
    }
    if (!this.#stale) return false;
    this.#renew();
    return true;
  }

  /** Advertises another START; true if it is another. */
  offer(start: string): boolean {
    if (start === this.#start) return false;
    this.#start = start;
    this.ad = { ...this.ad, START: start };
    return true;
  }

  get #rootFile(): string {
    return this.#options.rootPolicy ?? ROOT_POLICY_FILE;
  }

  #readConfig(): void {
    try {
      this.#config = readWorkerConfig(this.#options.file);
    } catch (thrown) {
      return this.#options.log(`${asError(thrown).message} The previous settings stay in force.`);
    }
    this.#stale = true;
    this.#options.log('its configuration has changed');
  }

  #readWord(): void {
    try {
      this.#word = readOwnerWord(this.#config.dir);
      this.#stale = true;
    } catch (thrown) {
      this.#options.log(
        `${ownerFile(this.#config.dir)}: ${asError(thrown).message}. The previous settings stay in force.`,
      );
    }
  }

  async #readRoot(): Promise<void> {
    try {
      this.#root = await readRootPolicy(this.#rootFile);
      this.#closed = false;
    } catch (thrown) {
      const closed = this.#root === undefined;
      this.#closed ||= closed;
      const instead = closed ? 'No job is taken until it is corrected.' : 'The previous settings stay in force.';
      this.#options.log(`${asError(thrown).message} ${instead}`);
    }
    this.#stale = true;
  }

  #renew(): void {
    this.#stale = false;
    const config = this.#config;
    this.limitMemory = config.limitMemory === true;
    if (this.groups) this.groups.limitMemory = this.limitMemory;
    this.size = { ...this.#measure(), diskKb: this.size.diskKb };
    this.#policy = this.#makePolicy();
    const ad = this.#makeAd();
    const gone = Object.keys(this.ad).filter((name) => !Object.hasOwn(ad, name));
    const start = this.#start === undefined ? {} : { START: this.#start };
    this.ad = { ...Object.fromEntries(gone.map((name) => [name, null])), ...ad, ...start };
  }

  #measure(): Size {
    const size = measure(this.#config.dir, this.#bounds(), this.#options.environment);
    const others = Object.entries(this.#config.resources ?? {}).map(([name, amount]) => [name.toLowerCase(), amount]);
    return others.length === 0 ? size : { ...size, others: Object.fromEntries(others) };
  }

  /** The cores that are left to the owner do not count. */
  #bounds(): WorkerConfig {
    const keep = Math.max(this.#word.keep ?? 0, this.#root?.keep ?? 0);
    if (keep === 0) return this.#config;
    const { cpus } = measure(this.#config.dir, this.#config, this.#options.environment);
    return { ...this.#config, cpus: Math.max(0, cpus - keep) };
  }

  #makePolicy(): Policy {
    const texts = textsInForce(this.#config, this.#root);
    const same = this.#policy as Policy | undefined;
    if (same && JSON.stringify(same.texts) === JSON.stringify(texts)) return same;
    return new Policy(texts, (message) => this.#options.log(`its policy: ${message}`));
  }

  #checkpointAd(): AttrTexts {
    const { checkpoints } = this.#options;
    if (process.getuid?.() === 0 && this.runAs !== 'owner')
      return noEngines('jobs run under accounts of their own (pool.run_as)').ad;
    return checkpoints?.ad ?? {};
  }

  #makeAd(): AttrTexts {
    const { instance } = this.#options;
    const { name, site, fileSystemDomain, attributes, resources } = this.#config;
    const { START, RANK, MaxJobRetirementTime, MachineMaxVacateTime } = this.#policy.texts;
    return machineAd(name, this.size, {
      GryphusSite: quoted(site),
      GryphusWorker: quoted(instance),
      FileSystemDomain: quoted(fileSystemDomain ?? instance),
      UidDomain: quoted(fileSystemDomain ?? instance),
      START,
      Rank: RANK,
      MaxJobRetirementTime,
      MachineMaxVacateTime,
      ...javaAd(this.#options.environment),
      ...this.#checkpointAd(),
      ...this.#options.remoteIo?.ad,
      ...this.groups?.ad(),
      ...resourceTexts(resources),
      ...attributes,
      ...this.#root?.attributes,
    });
  }
}

/** Differs after each write. */
function signatureOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found ? `${found.ino}:${found.size}:${found.mtimeMs}:${found.mode}:${found.uid}` : '';
}
