import { existsSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { GryphusError } from '../../errors.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import type { ContainerSpec } from '../../site/contract.ts';
import type { ProcessIdentity } from '../../util/process-identity.ts';
import { AttemptDir } from './attempt-dir.ts';
import type { AttemptPlace } from './attempt-place.ts';
import { type Found, runtimeAd, runtimeFor } from './container-runtimes.ts';
import { type Contained, type ContainerScript, containerScript, LABELS, removal } from './container-script.ts';
import { findRuntimes } from './find-runtimes.ts';
import { jobScript, type Placed } from './job-script.ts';
import type { Run } from './run.ts';
import { endPause, WORKER_VARIABLE } from './podman-pause.ts';
import { endBriefRuns, runBriefly } from './run-briefly.ts';
import type { BlobCache } from './sandbox.ts';

/** What a container runtime itself looks at; jobs do not see it. */
const SURROUNDINGS =
  /^(XDG_(RUNTIME_DIR|CONFIG_HOME|DATA_HOME)|DBUS_SESSION_BUS_ADDRESS|DOCKER_(HOST|CONFIG|CONTEXT)|CONTAINER_HOST|CONTAINERS_\w+|STORAGE_(DRIVER|OPTS)|REGISTRY_AUTH_FILE|(APPTAINER|SINGULARITY)_(CACHEDIR|TMPDIR|CONFIGDIR)|(https?|no)_proxy|(HTTPS?|NO)_PROXY)$/;
const REMOVE_MS = 60_000;
/** One engine may serve all of a host's users. */
const OWNER = `${process.getuid?.() ?? 0}@${hostname()}`;

export interface ContainersOptions {
  /** The worker's own directory. */
  readonly dir: string;
  /** What jobs see of the worker's environment, and all of it. */
  readonly env: NodeJS.ProcessEnv;
  readonly environment: NodeJS.ProcessEnv;
  readonly log: (message: string) => void;
}

/** The containers of a worker's jobs: what starts them here, how, and that none is left behind. */
export class Containers {
  readonly #options: ContainersOptions;
  readonly #surroundings: Readonly<Record<string, string>>;
  /** What runtimes see of the worker's environment, when they are tried as when they run jobs. */
  readonly #env: NodeJS.ProcessEnv;
  #found: Found = { runtimes: [], why: [] };
  #ad: AttrTexts = {};

  constructor(options: ContainersOptions) {
    this.#options = options;
    this.#surroundings = {
      ...Object.fromEntries(
        Object.entries(options.environment).flatMap(([name, value]) =>
          value !== undefined && SURROUNDINGS.test(name) ? [[name, value] as const] : [],
        ),
      ),
      [WORKER_VARIABLE]: options.dir,
    };
    this.#env = { ...options.env, ...this.#surroundings };
  }

  /** Looks what there is, which may take a minute, and removes what workers that are no more left on this host. */
  async find(): Promise<void> {
    const { dir, log } = this.#options;
    this.#found = await findRuntimes({ dir, env: this.#env });
    const { runtimes, why } = this.#found;
    this.#ad = runtimeAd(this.#found);
    for (const { kind, version, flags } of runtimes) log(`runs containers by ${kind} ${version} (${flags.join(' ')})`);
    for (const message of why) log(`cannot run containers by ${message}`);
    for (const { kind, program } of runtimes) if (kind !== 'apptainer') await this.#sweep(kind, program);
  }

  /** What runtimes left beside the containers goes with the worker; containers that run are left to whoever comes next. */
  close(): void {
    endBriefRuns();
    endPause(this.#options.dir);
  }

  /** For the machine's ad; another object when there is something new. */
  ad(): AttrTexts {
    return this.#ad;
  }

  /** Writes down what `starter` shall run for an attempt. Throws a GryphusError where it cannot be run here. */
  arm(
    run: Pick<Run, 'key' | 'record' | 'names'>,
    dir: AttemptDir,
    starter: ProcessIdentity,
    placed: Placed,
    cache: BlobCache,
    /** Makes its group. */
    enter: () => readonly string[],
    /** The words that wait for a program. */
    waiter: readonly string[],
  ): void {
    const { spec } = run.record;
    if (!spec.container)
      return dir.arm(starter, jobScript(run.key, spec, { ...placed, doors: enter() }, waiter), run.names);
    const { go, env } = this.#script(run.key, { ...spec, container: spec.container }, dir, placed, cache, enter);
    dir.arm(starter, go, run.names, env);
  }

  #script(
    key: string,
    spec: Contained,
    dir: AttemptDir,
    placed: Placed,
    cache: BlobCache,
    enter: () => readonly string[],
  ): ContainerScript {
    const image = imagePath(spec.container.image, dir.work, cache);
    const isDirectory = image !== undefined && statSync(image, { throwIfNoEntry: false })?.isDirectory() === true;
    const runtime = runtimeFor(spec.container, this.#found, isDirectory);
    if (!runtime) throw new GryphusError('site-busy', 'no container runtime here can run this image');
    return containerScript(key, spec, runtime, {
      dir: dir.path,
      work: dir.work,
      cwd: placed.cwd,
      program: placed.program,
      stdin: placed.stdin,
      proxy: placed.proxy,
      ads: placed.ads === true,
      image,
      // With others it is no process of ours: they have their own groups.
      doors: runtime.kind === 'apptainer' ? enter() : [],
      owner: OWNER,
      surroundings: this.#surroundings,
    });
  }

  /** Removes what an attempt's script could not remove itself; `undefined`: there is nothing. */
  release(dir: AttemptPlace): Promise<void> | undefined {
    const left = dir instanceof AttemptDir ? dir.container() : undefined;
    if (!left || !(dir instanceof AttemptDir)) return undefined;
    return this.#remove(kindOf(left.program), left.program, left.name).then(() => dir.released());
  }

  async #remove(kind: 'podman' | 'docker', program: string, name: string): Promise<void> {
    const options = { env: this.#env, timeoutMs: REMOVE_MS };
    const end = await runBriefly([program, ...removal(kind), name], options);
    if (end.code !== 0) this.#options.log(`the container ${name} is left behind: ${end.message}`);
  }

  /** Our containers on this host whose attempts' directories are gone. */
  async #sweep(kind: 'podman' | 'docker', program: string): Promise<void> {
    const format = `{{.ID}} {{index .Labels "${LABELS.owner}"}} {{index .Labels "${LABELS.dir}"}}`;
    const docker = `{{.ID}} {{.Label "${LABELS.owner}"}} {{.Label "${LABELS.dir}"}}`;
    const list = ['ps', '--all', '--filter', `label=${LABELS.dir}`, '--format', kind === 'podman' ? format : docker];
    const { code, stdout } = await runBriefly([program, ...list] as [string, ...string[]], {
      env: this.#env,
      timeoutMs: REMOVE_MS,
    });
    if (code !== 0) return;
    for (const line of stdout.split('\n')) {
      const [id = '', owner, ...words] = line.split(' ');
      if (id !== '' && owner === OWNER && !existsSync(words.join(' '))) await this.#remove(kind, program, id);
    }
  }
}

function kindOf(program: string): 'podman' | 'docker' {
  return program.endsWith('/docker') ? 'docker' : 'podman';
}

function imagePath(image: ContainerSpec['image'], work: string, cache: BlobCache): string | undefined {
  if (image.kind === 'registry') return undefined;
  if (image.kind === 'there') return isAbsolute(image.path) ? image.path : join(work, image.path);
  return image.file.kind === 'blob' ? cache.here(image.file.blob) : undefined;
}
