import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { readImageHeader } from '../../../staging/image.ts';
import { shellWords } from '../../../util/shell-quote.ts';
import type { CheckpointHelper } from '../../host/checkpoint-helper.ts';
import { belowOf, parentOf, signal } from '../../host/processes.ts';
import type { PlacedJob } from '../job-script.ts';
import {
  baseIn,
  type CheckpointEngine,
  type Dumped,
  type EngineDir,
  type EngineJob,
  HELPER,
  imageOf,
  OURS,
  reportIn,
  reportOf,
  unrestoredBy,
} from './engine.ts';
import { tryOut } from './try-out.ts';

/*
 * CRIU restores files by their paths and processes by their numbers. So the job runs from its start in a pid namespace, and
 * in a mount namespace in which its sandbox and streams are below a path that is the same on every machine; native/src/nest.c
 * makes both, and CRIU runs in them.
 */

/** An empty directory of the machine; what is there, only the job sees. */
const AT = '/run/gryphus-job';
const STREAMS = ['stdout', 'stderr'] as const;
/** In an attempt's directory: what CRIU writes and reads, and its log of both. */
const PLACE = 'criu';
const LOG = { dump: 'dump.log', restore: 'restore.log' } as const;
/** Where it is installed, whatever the worker's PATH. */
const PLACES = ['/usr/local/sbin', '/usr/sbin', '/sbin'];
/** Content of files without names goes into the image up to this size. */
const GHOSTS = ['--ghost-limit', '1G'];
const COMMON = ['--manage-cgroups=ignore'];
const CHECK_MS = 10_000;

/** CRIU, if it works here; else why not: a sentence. */
export async function findCriu(helper: CheckpointHelper): Promise<CheckpointEngine | string> {
  const { program } = helper;
  if (program === undefined) return `CRIU is started by ${HELPER}, which does not work here`;
  if (process.getuid?.() !== 0) return 'CRIU needs a worker that runs as root';
  const env = { ...process.env, PATH: [process.env['PATH'], ...PLACES].join(':') };
  const criu = spawnSync('sh', ['-c', 'command -v criu'], { env, encoding: 'utf8' }).stdout.trim();
  if (criu === '') return 'there is no program criu';
  const checked = spawnSync(criu, ['check'], { encoding: 'utf8', timeout: CHECK_MS });
  if (checked.status !== 0) return `criu check says: ${complaint(checked.stderr) ?? `status ${checked.status}`}`;
  const version = /Version: (\S+)/.exec(spawnSync(criu, ['--version'], { encoding: 'utf8' }).stdout)?.[1] ?? '';
  // What the helper found out of the processor, and the code of the C library: files that programs map must be equal.
  const cpu = helper.platform.split(' ').find((word) => word.startsWith('cpu-')) ?? '';
  const engine = criuEngine(program, criu, `criu-${version} Linux ${process.arch} ${cpu} libc-${libcDigest()}`);
  return (await tryOut(engine)) ?? engine;
}

function criuEngine(helper: string, criu: string, platform: string): CheckpointEngine {
  const nested = ({ dir }: EngineJob, placed: PlacedJob, words: readonly string[]): PlacedJob => ({
    ...placed,
    scratch: join(AT, 'work'),
    command: [helper, 'nest', '--at', AT, '--sandbox', dir.work, '--report', reportOf(dir), ...words],
  });
  return {
    name: 'criu',
    platform,
    start: (job, placed) => {
      const { work } = job.dir;
      const program = placed.program.startsWith(`${work}/`)
        ? join(AT, 'work', placed.program.slice(work.length))
        : placed.program;
      return nested(job, placed, ['--', program, ...job.args]);
    },
    restore: (job, placed) => {
      const { dir } = job;
      const files = join(dir.path, PLACE);
      const first = join(files, 'first');
      // The image has all files of the sandbox, and none that the job has removed.
      for (const name of readdirSync(dir.work))
        if (!OURS.includes(name)) rmSync(join(dir.work, name), { recursive: true });
      const streams = STREAMS.flatMap((name, n) => ['--inherit-fd', `fd[${3 + n}]:${join(AT, name).slice(1)}`]);
      return nested(job, placed, [
        '--from',
        baseIn(dir),
        '--into',
        dir.path,
        '--first',
        first,
        '--',
        criu,
        'restore',
        '-d',
        '-D',
        files,
        '-o',
        LOG.restore,
        '--pidfile',
        first,
        ...streams,
        ...COMMON,
      ]);
    },
    unrestored: (dir) => {
      const trouble = unrestoredBy(dir);
      return trouble === undefined ? undefined : (inLog(dir, 'restore') ?? trouble);
    },
    dump: (job, _, kill) => dump(job, { helper, criu, kill }),
  };
}

async function dump(
  { dir }: EngineJob,
  { helper, criu, kill }: { readonly helper: string; readonly criu: string; readonly kill: boolean },
): Promise<Dumped> {
  const { keeper, first } = numbersOf(dir);
  if (keeper === undefined || first === undefined) return { trouble: 'its program has not started' };
  const foreign = writtenElsewhere(Number(keeper));
  if (foreign !== undefined) return { trouble: foreign };
  // They are part of no image, and have to see the end of the job also if it was suspended.
  for (const pid of [Number(keeper), parentOf(Number(keeper)) ?? 0]) signal(pid, 'SIGCONT');
  const files = join(dir.path, PLACE);
  rmSync(files, { recursive: true, force: true });
  mkdirSync(files, { mode: 0o700 });
  const script = join(dir.path, 'pack.sh');
  const pack = [
    helper,
    'pack',
    dir.path,
    imageOf(dir),
    'criu',
    dir.stream('stdout'),
    dir.stream('stderr'),
    ...OURS.map((name) => `--exclude=work/${name}`),
    PLACE,
    'work',
  ];
  // CRIU runs it while the job stands still, and ends the job or lets it go on when the image is whole.
  writeFileSync(script, `#!/bin/sh\n[ "$CRTOOLS_SCRIPT_ACTION" = post-dump ] || exit 0\nexec ${shellWords(pack)}\n`, {
    mode: 0o700,
  });
  const words = [
    '-t',
    keeper,
    '-m',
    '-p',
    '--',
    criu,
    'dump',
    '-t',
    first,
    '-D',
    files,
    '-o',
    LOG.dump,
    '--action-script',
    script,
    ...COMMON,
    ...GHOSTS,
    ...(kill ? [] : ['--leave-running']),
  ];
  const before = idOf(dir);
  return new Promise((resolve) =>
    execFile('nsenter', words, { encoding: 'utf8' }, (error, _, stderr) => {
      const trouble = error === null ? undefined : (inLog(dir, 'dump') ?? (stderr.trim() || error.message));
      rmSync(files, { recursive: true, force: true });
      if (kill && idOf(dir) !== before) {
        // With the job's last process its namespace ends, and CRIU in it, perhaps before it was ready.
        signal(Number(keeper), 'SIGKILL');
        return resolve({});
      }
      if (error?.signal) return resolve({ trouble: 'criu was killed', isBroken: true });
      return resolve(trouble === undefined ? {} : { trouble });
    }),
  );
}

/** The first process of its namespace as the worker knows it, and of the job as that namespace does. */
function numbersOf(dir: EngineDir): { readonly keeper: string | undefined; readonly first: string | undefined } {
  const said = reportIn(dir);
  return { keeper: /^keeper (\d+)$/m.exec(said)?.[1], first: /^first (\d+)$/m.exec(said)?.[1] };
}

function idOf(dir: EngineDir): string | undefined {
  return existsSync(imageOf(dir)) ? readImageHeader(imageOf(dir)).id : undefined;
}

/** A file outside of the sandbox and the streams that the job may write to: what it writes there is not undone. */
function writtenElsewhere(keeper: number): string | undefined {
  const mounts = readFileSync(`/proc/${keeper}/mountinfo`, 'utf8')
    .split('\n')
    .map((line) => line.split(' '));
  const inside = new Set(mounts.flatMap(([id, , , , at]) => (at?.startsWith(`${AT}/`) ? [id] : [])));
  for (const pid of belowOf([keeper])) {
    try {
      for (const fd of readdirSync(`/proc/${pid}/fd`)) {
        const info = readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8');
        const flags = Number.parseInt(/^flags:\s*(\d+)/m.exec(info)?.[1] ?? '0', 8);
        const mount = /^mnt_id:\s*(\d+)/m.exec(info)?.[1];
        if ((flags & 3) === 0 || inside.has(mount) || !statSync(`/proc/${pid}/fd/${fd}`).isFile()) continue;
        return `file descriptor ${fd} writes to ${readlinkSync(`/proc/${pid}/fd/${fd}`)}, outside of its directory`;
      }
    } catch {
      // It has ended, or closed the file.
    }
  }
  return undefined;
}

function inLog(dir: EngineDir, which: keyof typeof LOG): string | undefined {
  try {
    return complaint(readFileSync(join(dir.path, PLACE, LOG[which]), 'utf8'));
  } catch {
    return undefined;
  }
}

/** The first error is what the others follow from. */
function complaint(log: string): string | undefined {
  const errors = [...log.matchAll(/^(?:\([\d.]+\) )?\s*(?:\d+: )?Error \([^)]*\): (.*)$/gm)].map(
    ([, text]) => text ?? '',
  );
  return errors.find((text) => !text.startsWith('rlimit:'));
}

function libcDigest(): string {
  const path = /\S*\/libc[.-]\S*so\S*$/m.exec(readFileSync('/proc/self/maps', 'utf8'))?.[0];
  return path === undefined ? 'none' : createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 16);
}
