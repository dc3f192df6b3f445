import { pathOrStart } from '../../job/start-directory.ts';
import { GryphusError } from '../../errors.ts';
import type { ContainerSpec } from '../../site/contract.ts';
import { shellQuote, shellWords } from '../../util/shell-quote.ts';
import { gpuVariables } from './gpus.ts';
import { adVariables, chirpVariable, slotVariable, entering } from './job-script.ts';
import { mountable, type Runtime } from './container-runtimes.ts';
import type { JobUser } from './job-users.ts';
import { KEY_VARIABLE } from '../host/processes.ts';
import type { RunSpec } from '../wire/wire.ts';

export interface ContainerPlace {
  /** The attempt's directory, which contains `work`, as an absolute path. */
  readonly dir: string;
  /** The sandbox, as an absolute path. */
  readonly work: string;
  /** The working directory; `undefined` for the sandbox. */
  readonly cwd: string | undefined;
  /** Its path in the container; '' for the image's default command. */
  readonly program: string;
  readonly stdin: string | undefined;
  /** The path of the job's proxy; its directory is mounted, since the proxy is renewed there. */
  readonly proxy: string | undefined;
  /** Whether the ad files are in the sandbox. */
  readonly ads: boolean;
  /** As the pool names it: `slot1_1@host`. */
  readonly slot?: string | undefined;
  /** Its GPUs; `undefined` on a machine without. */
  readonly gpus?: readonly string[] | undefined;
  /** Whether it has a proxy for requests to its home. */
  readonly chirp?: boolean;
  /** The path of an image that was transferred, or that is on the node. */
  readonly image: string | undefined;
  /** Identifies the owner of these containers on this host. */
  readonly owner: string;
  /** As for jobs without a container: the files through which a process enters the cgroup. */
  readonly doors?: readonly string[];
  /** The part of the worker's environment that the runtime needs, as opposed to the program. */
  readonly surroundings: Readonly<Record<string, string>>;
  /** The account that the program runs under, if not the worker's, and the words before a command that runs so. */
  readonly user?: JobUser | undefined;
  readonly become?: readonly string[] | undefined;
}

export interface ContainerScript {
  readonly go: string;
  /** The program's environment, one variable per line. */
  readonly env: string;
}

export type Contained = RunSpec & { readonly container: ContainerSpec };

/** The labels that identify a container's attempt: its directory, and the user and host that it belongs to. */
export const LABELS = { dir: 'gryphus.dir', owner: 'gryphus.owner' } as const;

/** Exit statuses of the script if the program was not started. */
export const NO_IMAGE = 217;
const CANNOT = 216;

/** The path of the sandbox in the container. */
export function sandboxInside({ targetDir }: ContainerSpec, work: string): string {
  return targetDir ?? work;
}

/**
 * The shell text that runs an attempt in a container. Like that of jobScript, it runs in a subshell of the starter,
 * with the same order of steps. The container's name is written to `box` before it is created. Throws 'output-missing'
 * if the container cannot be set up.
 */
export function containerScript(
  key: string,
  spec: Contained,
  runtime: Runtime,
  place: ContainerPlace,
): ContainerScript {
  const { container } = spec;
  const inside = sandboxInside(container, place.work);
  const cwd = place.cwd ?? inside;
  const outside = [...container.binds, ...(place.proxy === undefined ? [] : [place.proxy.replace(/\/[^/]*$/, '')])];
  const mounts = [[place.work, inside] as const, ...outside.map((path) => [path, path] as const)];
  for (const path of mounts.flat())
    if (!mountable(path)) throw cannot(`${runtime.kind} cannot mount the directory '${path}'`);
  const variables = {
    ...Object.fromEntries(
      Object.entries(spec.env).map(([name, value]) => [name, pathOrStart(value) === undefined ? value : cwd]),
    ),
    [KEY_VARIABLE]: key,
    _CONDOR_SCRATCH_DIR: inside,
    ...(place.proxy === undefined ? {} : { X509_USER_PROXY: place.proxy }),
    ...(place.ads ? adVariables(inside) : {}),
    ...slotVariable(place.slot),
    ...(place.chirp ? chirpVariable(inside) : {}),
    ...gpuVariables(place.gpus),
    BATCH_SYSTEM: 'Gryphus',
  };
  if (place.image !== undefined && !mountable(place.image))
    throw cannot(`${runtime.kind} cannot use an image with the path '${place.image}'`);
  const parts: Parts = { key, spec, runtime, place, mounts, cwd, variables };
  const { env, text } = runtime.kind === 'apptainer' ? apptainer(parts) : engine(parts);
  return { env, go: [...opening(place), ...text, ''].join('\n') };
}

interface Parts {
  readonly key: string;
  readonly spec: Contained;
  readonly runtime: Runtime;
  readonly place: ContainerPlace;
  readonly mounts: readonly (readonly [string, string])[];
  readonly cwd: string;
  readonly variables: Readonly<Record<string, string>>;
}

/** The same signals as starter.sh ignores. */
const SIGNALS = ['TERM', 'HUP', 'INT', 'QUIT', 'USR1', 'USR2', 'XCPU'];

/** The runtime must pass on signals, so the shell that started it survives them and waits for it. */
function opening({ surroundings, doors }: ContainerPlace): string[] {
  return [
    ...entering(doors),
    'stop=',
    `trap 'stop=1' ${SIGNALS.join(' ')}`,
    'umask 022',
    ...Object.entries(surroundings).map(([name, value]) => `export ${name}=${shellQuote(value)}`),
  ];
}

/** Opens the program's streams, unless it was asked to end in the meantime. */
function begin({ spec, place }: Parts): string[] {
  return [
    `[ -z "$stop" ] || quit ${CANNOT}`,
    `{ exec <${place.stdin === undefined ? '/dev/null' : shellQuote(place.stdin)} 3>"$d/stdout"; } || quit ${CANNOT}`,
    `: >"$d/started" || quit ${CANNOT}`,
    spec.joinStderr ? 'errors=$d/stdout; exec 4>&3' : 'errors=$d/stderr; exec 4>"$errors"',
  ];
}

/** podman and docker: a container is created, started, inspected and removed. */
function engine(parts: Parts): { readonly env: string; readonly text: string[] } {
  const { key, spec, runtime, place, mounts, cwd } = parts;
  const { container } = spec;
  const { file, named } = envFile(parts);
  const name = containerName(key);
  const command = [...(place.program === '' ? [] : [place.program]), ...spec.args];
  const entrypoint = place.program !== '' && !container.keepEntrypoint ? place.program : undefined;
  const flags = [
    ...engineFlags(runtime),
    '--name',
    name,
    '--label',
    `${LABELS.dir}=${place.dir}`,
    '--label',
    `${LABELS.owner}=${place.owner}`,
    '--network',
    networkOf(container),
    '--workdir',
    cwd,
    ...(place.user ? ['--user', `${place.user.uid}:${place.user.gid}`] : []),
    ...mounts.flatMap(([from, to]) => ['--volume', `${from}:${to}`]),
    '--env-file',
    `${place.dir}/env`,
    ...Object.keys(named).flatMap((one) => ['--env', one]),
    ...(place.stdin === undefined ? [] : ['--interactive']),
    ...(entrypoint === undefined ? [] : ['--entrypoint', entrypoint]),
  ];
  const rest = shellWords(entrypoint === undefined ? command : spec.args);
  const program = shellQuote(runtime.program);
  const exported = Object.entries(named).map(([one, value]) => `export ${one}=${shellQuote(value)};`);
  const attach = place.stdin === undefined ? '--attach' : '--attach --interactive';
  const text = [
    `run=${program} box=${name}`,
    `quit() { "$run" ${shellWords(removal(runtime.kind))} "$box" </dev/null >/dev/null 2>&1 && rm -f "$d/box"; exit "$1"; }`,
    ...engineImage(parts),
    `printf '%s\\n' "$run" "$box" >"$d/box" || exit ${CANNOT}`,
    `(${exported.join(' ')} exec "$run" create ${shellWords(flags)} $rootfs "$image" ${rest}) </dev/null >/dev/null || quit ${CANNOT}`,
    ...begin(parts),
    // The client has its own session, since signals would kill it before it passed them on; the shell does that
    // instead.
    'exec 5<&0',
    `setsid "$run" start ${attach} "$box" <&5 >&3 2>&4 &`,
    'client=$!',
    'pass() {',
    '  stop=1',
    '  until "$run" kill --signal "$1" "$box" </dev/null >/dev/null 2>&1; do',
    '    kill -0 "$client" 2>/dev/null || return 0',
    '    sleep 0.1',
    '  done',
    '}',
    ...SIGNALS.map((signal) => `trap 'pass ${signal}' ${signal}`),
    '[ -z "$stop" ] || pass TERM',
    'while wait "$client"; code=$?; kill -0 "$client" 2>/dev/null; do :; done',
    'look() { "$run" container inspect --format "{{.State.Status}} {{.State.ExitCode}} {{.State.StartedAt}}" "$box" </dev/null 2>/dev/null; }',
    'state=$(look)',
    // The client may notice the end before the engine does.
    'case $state in running*) [ -n "$stop" ] || "$run" wait "$box" </dev/null >/dev/null 2>&1; state=$(look) ;; esac',
    'case $state in',
    // It was created, but its program could not be started.
    `  *" 0001-"*) rm -f "$d/started"; tail -n 3 "$errors" >"$d/said"; quit ${CANNOT} ;;`,
    '  exited*|stopped*|dead*) code=${state#* } code=${code%% *} ;;',
    'esac',
    // If there is an init, it is the init that reports that the program cannot be executed.
    'case $code in 1 | 126 | 127)',
    '  last=$(tail -n 1 "$errors")',
    '  case $last in "ERROR (catatonit:"*"): failed to exec pid1"* | "[FATAL tini ("*")] exec "*" failed"*)',
    `    rm -f "$d/started"; printf '%s\\n' ${shellQuote(`${place.program}: `)}"$last" >"$d/said"; quit ${CANNOT} ;;`,
    '  esac ;;',
    'esac',
    ...RECORDED,
  ];
  return { env: file, text };
}

/**
 * As in HTCondor, a status above 128 means a signal. The record has the waiter's format, and overwrites the space that
 * the starter reserved.
 */
const RECORDED = [
  'if [ "$code" -gt 128 ] && [ "$code" -le 192 ]; then code=$((code - 128)); else code=$((code << 8)); fi',
  `printf '${'%016x '.repeat(7)}%016x\\n' "$code" 0 0 0 0 0 0 0 1<>"$d/exit"`,
  'quit 0',
];

/**
 * Sets `$image` to the engine's name for it, loading or pulling it if necessary; a directory is used in place, and not
 * modified.
 */
function engineImage({ spec, place }: Parts): string[] {
  const { image, alwaysPull } = spec.container;
  if (image.kind === 'registry') {
    const name = image.name.replace(/^docker:(\/\/)?/, '');
    if (name === '' || name.startsWith('-')) throw cannot(`'${image.name}' is not the name of an image`);
    const pull = `"$run" pull --quiet "$image" </dev/null >/dev/null || exit ${NO_IMAGE}`;
    const there = '"$run" image inspect "$image" </dev/null >/dev/null 2>&1';
    // A short name refers to docker's registry, unless there is a local image with that name.
    const whole = qualified(name);
    return [
      `rootfs= image=${shellQuote(name)}`,
      ...(whole === name ? [] : [`${there} || image=${shellQuote(whole)}`]),
      alwaysPull ? pull : `${there} || ${pull}`,
    ];
  }
  return [
    `rootfs= image=${shellQuote(place.image ?? '')}`,
    `if [ -d "$image" ]; then rootfs=--rootfs image=$image:O; else`,
    `  [ -e "$image" ] || { echo "There is no image $image on the node." >&2; exit ${NO_IMAGE}; }`,
    `  loaded=$("$run" load --quiet --input "$image" </dev/null) || exit ${NO_IMAGE}`,
    '  image=${loaded##* }',
    'fi',
  ];
}

function qualified(name: string): string {
  const [first = '', ...others] = name.split('/');
  if (others.length === 0) return `docker.io/library/${name}`;
  return /[.:]/.test(first) || first === 'localhost' ? name : `docker.io/${name}`;
}

function networkOf({ network }: ContainerSpec): string {
  if (network === undefined) return 'host';
  return network === 'nat' ? 'bridge' : network;
}

/** The options of all our containers, whatever runs in them. */
export function engineFlags({ kind, flags }: Pick<Runtime, 'kind' | 'flags'>): string[] {
  return [
    '--cap-drop=all',
    '--security-opt',
    'no-new-privileges',
    '--security-opt',
    'label=disable',
    '--no-healthcheck',
    '--log-driver',
    'none',
    ...(kind === 'podman' ? ['--http-proxy=false'] : []),
    ...flags,
  ];
}

/** The command that kills and removes a container with its volumes. */
export function removal(kind: Runtime['kind']): string[] {
  return ['rm', '--force', '--volumes', ...(kind === 'podman' ? ['--ignore', '--time', '0'] : [])];
}

/** apptainer and singularity: the container is one process, and ends with it. */
function apptainer({ spec, runtime, place, mounts, cwd, variables, ...others }: Parts): {
  readonly env: string;
  readonly text: string[];
} {
  const { image } = spec.container;
  const prefix = runtime.program.endsWith('/singularity') ? 'SINGULARITYENV_' : 'APPTAINERENV_';
  const evaluates = !runtime.flags.includes('--no-eval');
  for (const [name, value] of Object.entries(variables)) {
    if (!IDENTIFIER.test(name)) throw cannot(`${runtime.kind} cannot pass a variable named '${name}'`);
    if (evaluates && /[$`]/.test(value))
      throw cannot(`${runtime.kind} ${runtime.version} would let a shell evaluate the variable ${name}`);
  }
  const program = place.program === '' ? [] : [place.program];
  const words = [
    // Its warnings would appear in the job's standard error.
    '--silent',
    program.length === 0 ? 'run' : 'exec',
    '--containall',
    '--no-home',
    '--workdir',
    `${place.dir}/tmp`,
    '--pwd',
    cwd,
    ...mounts.flatMap(([from, to]) => ['--bind', `${from}:${to}`]),
  ];
  const registry = image.kind === 'registry';
  const text = [
    `run=${shellQuote(runtime.program)}`,
    'quit() { exit "$1"; }',
    `mkdir -p "$d/tmp" || exit ${CANNOT}`,
    ...(place.user ? [`chown ${place.user.uid}:${place.user.gid} "$d/tmp" || exit ${CANNOT}`] : []),
    ...(registry
      ? [
          `image=${shellQuote(`${place.dir}/image.sif`)}`,
          `"$run" --silent pull "$image" ${shellQuote(image.name)} </dev/null >/dev/null || exit ${NO_IMAGE}`,
        ]
      : [
          `image=${shellQuote(place.image ?? '')}`,
          `[ -e "$image" ] || { echo "There is no image $image on the node." >&2; exit ${NO_IMAGE}; }`,
          ...(place.image?.endsWith('.sif') === true || (image.kind === 'file' && image.name.endsWith('.sif'))
            ? []
            : [
                'if [ ! -d "$image" ]; then',
                '  case $(tar -tf "$image" 2>/dev/null) in *manifest.json*) image=docker-archive:$image ;; *) image=oci-archive:$image ;; esac',
                'fi',
              ]),
        ]),
    `flags=${shellQuote(runtime.flags.join(' '))}`,
    ...(runtime.fileFlags === undefined ? [] : [`[ -d "$image" ] || flags="$flags ${runtime.fileFlags.join(' ')}"`]),
    // The worker's own test of the runtime tells nothing of what another account may do.
    ...(place.become && runtime.fileFlags?.length === 0
      ? [`[ -d "$image" ] || ${shellWords(place.become)} test -w /dev/fuse || flags="$flags --unsquash"`]
      : []),
    ...begin({ spec, runtime, place, mounts, cwd, variables, ...others }),
    ...Object.entries(variables).map(([name, value]) => `export ${prefix}${name}=${shellQuote(value)}`),
    // It opens the directory in which it is started, and another account cannot do so with the worker's.
    `(cd ${shellQuote(place.user ? `${place.dir}/work` : '.')} && exec ${shellWords(place.become ?? [])} "$run" ${shellWords(words)} $flags "$image" ${shellWords([...program, ...spec.args])}) >&3 2>&4`,
    'code=$?',
    // apptainer's own error message if it could not start the program.
    'if [ "$code" -eq 255 ]; then',
    '  last=$(tail -n 1 "$errors")',
    `  case $last in FATAL:*) rm -f "$d/started"; printf '%s\\n' "$last" >"$d/said"; exit ${CANNOT} ;; esac`,
    'fi',
    ...RECORDED,
  ];
  return { env: '', text };
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Variables that the runtime itself interprets, so that they cannot be passed through its environment. */
const RUNTIMES_OWN =
  /^(PATH|HOME|TMPDIR|SHELL|LANG|LC_|LD_|XDG_|DBUS_|GO|SSL_|CONTAINER|DOCKER_|PODMAN_|BUILDAH_|STORAGE_|REGISTRY_|NOTIFY_|LISTEN_|_|.*_proxy$|.*_PROXY$)/;
const LONGEST = 60_000;

/**
 * The variables as lines of an env file. Its format cannot represent line breaks, so variables with line breaks, and
 * very long ones, are passed by name through the runtime's own environment.
 */
function envFile({ runtime, variables }: Parts): {
  readonly file: string;
  readonly named: Readonly<Record<string, string>>;
} {
  let file = '';
  const named: Record<string, string> = {};
  for (const [name, value] of Object.entries(variables)) {
    const line = `${name}=${value}`;
    if (/[\s=]/.test(name) || name === '' || name.startsWith('#'))
      throw cannot(`${runtime.kind} cannot pass a variable named '${name}'`);
    if (!/[\r\n]/.test(value) && line.length < LONGEST) file += `${line}\n`;
    else if (IDENTIFIER.test(name) && !RUNTIMES_OWN.test(name)) named[name] = value;
    else throw cannot(`${runtime.kind} cannot pass the variable ${name}, which contains a line break`);
  }
  return { file, named };
}

/** Never reused, like the key. */
export function containerName(key: string): string {
  return `gryphus-${key}`;
}

function cannot(message: string): GryphusError {
  return new GryphusError('output-missing', `${message}.`);
}
