import { chmodSync, constants, copyFileSync, existsSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { GryphusError } from '../../errors.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import type { ContainerSpec } from '../../site/contract.ts';
import type { ProcessIdentity } from '../../util/process-identity.ts';
import { AttemptDir } from './attempt-dir.ts';
import type { AttemptPlace } from './attempt-place.ts';
import { type FoundRuntime, runtimeAd, runtimeFor } from './container-runtimes.ts';
import { type Contained, type ContainerScript, containerScript, LABELS, removal } from './container-script.ts';
import { findRuntimes } from './find-runtimes.ts';
import { jobScript, type PlacedJob } from './job-script.ts';
import type { JobUser } from './job-users.ts';
import type { Run } from './run.ts';
import { endPause, WORKER_VARIABLE } from './podman-pause.ts';
import { endBriefRuns, runBriefly } from './run-briefly.ts';
import type { BlobCache } from './sandbox.ts';

/** Variables for the container runtime itself, which jobs do not see. */
const SURROUNDINGS =
  /^(XDG_(RUNTIME_DIR|CONFIG_HOME|DATA_HOME)|DBUS_SESSION_BUS_ADDRESS|DOCKER_(HOST|CONFIG|CONTEXT)|CONTAINER_HOST|CONTAINERS_\w+|STORAGE_(DRIVER|OPTS)|REGISTRY_AUTH_FILE|(APPTAINER|SINGULARITY)_(CACHEDIR|TMPDIR|CONFIGDIR)|(https?|no)_proxy|(HTTPS?|NO)_PROXY)$/;
const REMOVE_MS = 60_000;
/** One container engine may serve all users of a host. */
const OWNER = `${process.getuid?.() ?? 0}@${hostname()}`;

export interface ContainersOptions {
  /** The worker's own directory. */
  readonly dir: string;
  /** `env` is the part of the worker's `environment` that jobs see. */
  readonly env: NodeJS.ProcessEnv;
  readonly environment: NodeJS.ProcessEnv;
  readonly log: (message: string) => void;
}

/** The containers of a worker's jobs: which runtimes start them, how, and their removal. */
export class Containers {
  readonly #options: ContainersOptions;
  readonly #surroundings: Readonly<Record<string, string>>;
  /** The environment of runtimes, both when they are tested and when they run jobs. */
  readonly #env: NodeJS.ProcessEnv;
  #found: FoundRuntime = { runtimes: [], why: [] };
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

  /** Tests the runtimes, which may take a minute, and removes containers that former workers left on this host. */
  async find(): Promise<void> {
    const { dir, log } = this.#options;
    this.#found = await findRuntimes({ dir, env: this.#env, owner: OWNER });
    const { runtimes, why } = this.#found;
    this.#ad = runtimeAd(this.#found);
    for (const { kind, version, flags } of runtimes)
      log(`runs containers with ${kind} ${version} (${flags.join(' ')})`);
    for (const message of why) log(`cannot run containers with ${message}`);
    for (const { kind, program } of runtimes) if (kind !== 'apptainer') await this.#sweep(kind, program);
  }

  /** Ends what runtimes left beside the containers; running containers are left for the next worker. */
  close(): void {
    endBriefRuns();
    endPause(this.#options.dir);
  }

  /** Attributes for the machine's ad; a new object whenever they change. */
  ad(): AttrTexts {
    return this.#ad;
  }

  /** Writes what `starter` is to run for an attempt. Throws a GryphusError if it cannot run here. */
  arm(
    run: Pick<Run, 'key' | 'record' | 'names'>,
    dir: AttemptDir,
    starter: ProcessIdentity,
    placed: PlacedJob,
    cache: BlobCache,
    /** Creates its cgroup. */
    enter: () => readonly string[],
    /** The command that runs and waits for a program. */
    waiter: readonly string[],
  ): void {
    const { spec } = run.record;
    if (!spec.container)
      return dir.arm(starter, jobScript(run.key, spec, { ...placed, doors: enter() }, waiter), run.names);
    const whole = { ...spec, container: spec.container };
    const { go, env } = this.#script(run.key, whole, dir, placed, cache, enter, run.record.user);
    dir.arm(starter, go, run.names, env);
  }

  #script(
    key: string,
    spec: Contained,
    dir: AttemptDir,
    placed: PlacedJob,
    cache: BlobCache,
    enter: () => readonly string[],
    user: JobUser | undefined,
  ): ContainerScript {
    const found = imagePath(spec.container.image, dir.work, cache);
    const image = user && spec.container.image.kind === 'file' ? lent(found, dir) : found;
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
      slot: placed.slot,
      gpus: placed.gpus,
      chirp: placed.chirp === true,
      image,
      // With podman and docker, containers are not our child processes, and have cgroups of their own.
      doors: runtime.kind === 'apptainer' ? enter() : [],
      owner: OWNER,
      surroundings: this.#surroundings,
      user,
      become: placed.become,
    });
  }

  /** Removes the container that an attempt's script could not remove itself; `undefined` if there is none. */
  release(dir: AttemptPlace): Promise<void> | undefined {
    const left = dir instanceof AttemptDir ? dir.container() : undefined;
    if (!left || !(dir instanceof AttemptDir)) return undefined;
    return this.#remove(kindOf(left.program), left.program, left.name).then(() => dir.released());
  }

  async #remove(kind: 'podman' | 'docker', program: string, name: string): Promise<void> {
    const options = { env: this.#env, timeoutMs: REMOVE_MS };
    const end = await runBriefly([program, ...removal(kind), name], options);
    if (end.code !== 0) this.#options.log(`the container ${name} was left behind: ${end.message}`);
  }

  /** Removes our containers on this host whose attempts' directories no longer exist. */
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

/** A copy of an image that others than the worker can read. */
function lent(image: string | undefined, dir: AttemptDir): string | undefined {
  if (image === undefined) return undefined;
  const copy = join(dir.path, 'image');
  copyFileSync(image, copy, constants.COPYFILE_FICLONE);
  chmodSync(copy, 0o644);
  return copy;
}

function imagePath(image: ContainerSpec['image'], work: string, cache: BlobCache): string | undefined {
  if (image.kind === 'registry') return undefined;
  if (image.kind === 'there') return isAbsolute(image.path) ? image.path : join(work, image.path);
  return image.file.kind === 'blob' ? cache.here(image.file.blob) : undefined;
}
