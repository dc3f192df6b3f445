import {
  accessSync,
  chmodSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { arch } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { probeProgram } from './container-probe.ts';
import { type FoundRuntime, mountable, type Runtime } from './container-runtimes.ts';
import { engineFlags, LABELS } from './container-script.ts';
import { type BriefEnd, type BriefOptions, runBriefly } from './run-briefly.ts';

/** Timeouts for one test, and for all tests of one runtime, in milliseconds. */
const TRY_MS = 20_000;
const ALL_MS = 60_000;

const PROBE = 'probe-';
const PROGRAMS = [
  ['apptainer', ['apptainer', 'singularity']],
  ['podman', ['podman']],
  ['docker', ['docker']],
] as const;

export interface RuntimeSearch {
  /** The worker's own directory, in which jobs will run. */
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  /** Identifies the owner of these containers on this host. */
  readonly owner: string;
}

/**
 * The container runtimes of this node. Each is tested with its own container, in which a program writes a file into one
 * of our directories. A runtime that does so, leaving the file owned by us, can run jobs.
 */
export async function findRuntimes(look: RuntimeSearch): Promise<FoundRuntime> {
  for (const name of readdirSync(look.dir))
    if (name.startsWith(PROBE)) rmSync(join(look.dir, name), { recursive: true });
  const runtimes: Runtime[] = [];
  const why: string[] = [];
  for (const [kind, names] of PROGRAMS) {
    const program = names.flatMap((name) => onPath(name, look.env) ?? [])[0];
    if (program === undefined) continue;
    const found = await tried(kind, program, look);
    if (found === undefined) continue;
    if (typeof found === 'string') why.push(`${basename(program)}: ${found.replace(/\.*$/, '.')}`);
    else runtimes.push(found);
    if (typeof found !== 'string' && found.whyNoFiles !== undefined)
      why.push(`${basename(program)} with image files: ${found.whyNoFiles.replace(/\.*$/, '.')}`);
  }
  return { runtimes, why };
}

function onPath(name: string, env: NodeJS.ProcessEnv): string | undefined {
  for (const place of (env['PATH'] ?? '').split(delimiter)) {
    const path = join(place, name);
    try {
      if (!place.startsWith('/') || !statSync(path).isFile()) continue;
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not there.
    }
  }
  return undefined;
}

/**
 * The runtime with the flags that it needs, or a message that says why it cannot be used; `undefined` if it is a
 * different runtime under this name.
 */
async function tried(
  kind: Runtime['kind'],
  program: string,
  look: RuntimeSearch,
): Promise<Runtime | string | undefined> {
  const said = await runBriefly([program, '--version'], briefly(look.env));
  if (said.code !== 0) return said.message;
  if (kind === 'docker' && /podman/i.test(said.stdout)) return undefined;
  const version = /\d+(\.\d+)+[^\s,]*/.exec(said.stdout)?.[0] ?? '';
  if (!mountable(look.dir)) return `it cannot mount the directory '${look.dir}'`;
  const text = probeProgram(arch());
  if (!text) return `there is no test image for ${arch()}`;
  const dir = mkdtempSync(join(look.dir, PROBE));
  try {
    const places = { image: join(dir, 'image'), work: join(dir, 'work') };
    for (const place of Object.values(places)) mkdirSync(place, { mode: 0o755 });
    // apptainer mounts over these, and does not create them in every image.
    for (const name of ['dev', 'etc', 'proc', 'sys', 'tmp', 'var/tmp'])
      mkdirSync(join(places.image, name), { recursive: true, mode: 0o755 });
    writeFileSync(join(places.image, 'probe'), text, { mode: 0o755 });
    chmodSync(join(places.image, 'probe'), 0o755);
    chmodSync(places.work, 0o700);
    const image = kind === 'docker' ? imageName(dir) : places.image;
    const refused = kind === 'docker' ? await imports(program, places.image, image, look.env) : undefined;
    if (refused !== undefined) return refused;
    const end = await triedEach({ kind, program, version }, image, places.work, look);
    if (kind === 'docker') await runBriefly([program, 'rmi', '--force', image], briefly(look.env));
    return kind === 'apptainer' && typeof end !== 'string' ? await withSif(end, image, places.work, look) : end;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Tests each set of flags: the first that works, or the reason why the preferred ones do not. */
async function triedEach(
  runtime: Omit<Runtime, 'flags'>,
  image: string,
  work: string,
  look: RuntimeSearch,
): Promise<Runtime | string> {
  const until = performance.now() + ALL_MS;
  const made = join(work, 'ok');
  let first: string | undefined;
  for (const flags of candidates(runtime.kind)) {
    rmSync(made, { force: true });
    const failure = failureOf(await tryOnce({ ...runtime, flags }, image, work, look), made);
    if (failure === undefined) return { ...runtime, flags };
    first ??= failure;
    if (performance.now() > until) break;
  }
  return first ?? 'it could not be tested';
}

/**
 * Tests whether apptainer can also create and use an image file, which it needs for every image that is not a
 * directory.
 */
async function withSif(runtime: Runtime, image: string, work: string, look: RuntimeSearch): Promise<Runtime> {
  const made = join(work, 'ok');
  const file = `${image}.sif`;
  const built = await runBriefly([runtime.program, '--silent', 'build', file, image], briefly(look.env));
  if (built.code !== 0) return { ...runtime, whyNoFiles: built.message };
  let first: string | undefined;
  // If image files cannot be mounted, each run unpacks them.
  for (const fileFlags of [[], ['--unsquash']]) {
    rmSync(made, { force: true });
    const flags = [...runtime.flags, ...fileFlags];
    const failure = failureOf(await tryOnce({ ...runtime, flags }, file, work, look), made);
    if (failure === undefined) return { ...runtime, fileFlags };
    first ??= failure;
  }
  return { ...runtime, whyNoFiles: first };
}

function failureOf(end: BriefEnd, path: string): string | undefined {
  if (end.code !== 0) return end.message === '' ? `a container ended with ${end.code}` : end.message;
  const made = statSync(path, { throwIfNoEntry: false });
  if (!made) return 'files that a container writes are not visible here';
  return made.uid === process.getuid?.() ? undefined : 'files that a container writes do not belong to us';
}

/** Sets of flags that it may need, or may not support, here; best first. */
function candidates(kind: Runtime['kind']): string[][] {
  const uid = process.getuid?.() ?? 0;
  const me = ['--user', `${uid}:${process.getgid?.() ?? 0}`];
  const root = ['--user', '0:0'];
  // A container's first process ignores signals that it does not handle; with an init, the program is not the first
  // process.
  const inits = [['--init'], []];
  switch (kind) {
    case 'apptainer':
      // Without --no-eval, a shell evaluates the values of variables.
      return [['--no-eval', '--no-privs'], ['--no-privs'], []];
    case 'docker':
      return [me, root].flatMap((user) => inits.map((init) => [...user, ...init]));
    case 'podman': {
      const users = uid === 0 ? [me] : [['--userns=keep-id', ...me], root];
      const groups = [[], ['--cgroups=disabled']];
      // Podman's default limits may exceed the user's.
      const limits = ownLimits().flatMap((limit) => ['--ulimit', limit]);
      return users.flatMap((user) =>
        inits.flatMap((init) => groups.map((group) => [...user, ...limits, ...init, ...group])),
      );
    }
  }
}

/** The worker's own limits, as podman options; no higher than those to which podman lowers its own when it starts. */
function ownLimits(): string[] {
  const text = readFileSync('/proc/self/limits', 'latin1');
  const ceiling = readFileSync('/proc/sys/kernel/pid_max', 'latin1');
  const processes = Number(ceiling);
  return [['nofile', 'Max open files', 1_048_576] as const, ['nproc', 'Max processes', processes] as const].flatMap(
    ([name, line, most]) => {
      const [, soft, hard] = new RegExp(`^${line} +(\\w+) +(\\w+)`, 'm').exec(text) ?? [];
      const number = (limit: string) => (limit === 'unlimited' ? most : Math.min(Number(limit), most));
      return soft === undefined || hard === undefined ? [] : [`${name}=${number(soft)}:${number(hard)}`];
    },
  );
}

async function tryOnce(
  runtime: Pick<Runtime, 'kind' | 'program' | 'flags'>,
  image: string,
  work: string,
  { env, owner }: RuntimeSearch,
): Promise<BriefEnd> {
  const { kind, program, flags } = runtime;
  if (kind === 'apptainer') {
    const bind = ['--containall', '--no-home', '--bind', `${work}:${work}`, '--pwd', work];
    return runBriefly([program, '--silent', 'exec', ...bind, ...flags, image, '/probe'], briefly(env));
  }
  const run = [
    'run',
    '--rm',
    ...engineFlags(runtime),
    // One that stays in spite of all is removed by a later worker.
    '--label',
    `${LABELS.dir}=${dirname(work)}`,
    '--label',
    `${LABELS.owner}=${owner}`,
    '--network',
    'host',
    '--volume',
    `${work}:${work}`,
    '--workdir',
    work,
    ...(kind === 'podman' ? ['--rootfs', image] : [image]),
  ];
  return runBriefly([program, ...run, '/probe'], { ...briefly(env), container: true });
}

/** Loads the image into docker's store; returns a message if that fails. */
async function imports(
  program: string,
  from: string,
  name: string,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const text = 'tar -C "$1" -cf - . | "$2" import - "$3"';
  const end = await runBriefly(['/bin/sh', '-c', text, 'sh', from, program, name], briefly(env));
  return end.code === 0 ? undefined : end.message;
}

function imageName(dir: string): string {
  return `gryphus-${basename(dir).toLowerCase()}`;
}

function briefly(env: NodeJS.ProcessEnv): BriefOptions {
  return { env, timeoutMs: TRY_MS };
}
