import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { WriteStream } from 'node:tty';
import type { Paths } from '../config/paths.ts';
import { loadSite, POOL_SITE } from '../config/sites.ts';
import { backendOf } from '../backends/registry.ts';
import { GryphusError } from '../errors.ts';
import { openSite, transportTo } from '../open-site/open-site.ts';
import { batchIdOf } from '../job/batch-id.ts';
import { formatAttemptKey, formatJobId, type JobId } from '../job/ids.ts';
import { JOB_STATUS, LIFE } from '../job/life.ts';
import { CentralManagerClient } from '../pool/central-manager-client.ts';
import { poolPlaces } from '../pool/host/places.ts';
import { shellText } from '../pool/wire/shell-text.ts';
import type { Terminal } from '../pool/wire/wire.ts';
import type { JobRecord, Queue } from '../queue/api.ts';
import type { Site } from '../site/contract.ts';
import { deferred } from '../util/deferred.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { promptOf } from './prompt.ts';
import type { AskUser } from './types.ts';

/** How often, and how many times, a job's number at its site is looked for. */
const ID_LOOK_MS = 500;
const ID_LOOKS = 40;

/** Beside which job a shell runs, and what it is connected to. */
export interface ShellRequest {
  readonly id: JobId;
  /** A shell command line; without it, a shell that reads `stdin`. */
  readonly command?: string;
  /** The type of terminal that the far side gets. */
  readonly tty?: Terminal;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Answers the site's questions at log-in. */
  readonly ask?: AskUser;
}

/**
 * Runs a shell next to a running job, in its sandbox; resolves with the exit status. 'conflict' if that is impossible.
 */
export async function shellBeside(queue: Queue, paths: Paths, request: ShellRequest): Promise<number> {
  const [job] = await queue.get([request.id]);
  const name = formatJobId(request.id);
  if (!job) throw new GryphusError('not-found', `There is no job ${name} in the queue.`);
  const shows = JOB_STATUS[LIFE[job.state].shows];
  if (shows !== JOB_STATUS.running && shows !== JOB_STATUS.suspended)
    throw new GryphusError('conflict', `Job ${name} is not running.`, { suggestions: [`See gryphus why ${name}.`] });
  return job.site === POOL_SITE.name ? inPool(queue.agent, paths, request) : atSite(queue, paths, job, request);
}

async function inPool(agent: string, paths: Paths, request: ShellRequest): Promise<number> {
  const { id, command, tty, stdin, stdout, stderr } = request;
  const shell = randomBytes(9).toString('base64url');
  const { promise: over, resolve, reject } = deferred<number>();
  const centralManager = new CentralManagerClient({
    socket: poolPlaces(paths).clientSocket,
    client: `shell-${shell}`,
    map: false,
    take: (message, bytes) => {
      if (message.t === 'shell-out') (message.stream === 'stdout' ? stdout : stderr).write(bytes);
      if (message.t !== 'shell-over') return;
      if (message.message !== undefined) stderr.write(`gryphus: ${message.message}\n`);
      resolve(message.status);
    },
    onLost: () =>
      reject(new GryphusError('site-unreachable', "The connection to the pool's central manager was lost.")),
  });
  const job = `${agent}.${formatJobId(id)}`;
  await centralManager.say({
    t: 'shell',
    shell,
    job,
    ...(command === undefined ? {} : { command }),
    ...(tty && { tty }),
  });
  const feed = (bytes: Buffer) => void centralManager.say({ t: 'shell-in', shell, end: false }, bytes).catch(reject);
  const end = () => void centralManager.say({ t: 'shell-in', shell, end: true }).catch(reject);
  const window = tty && stdout instanceof WriteStream ? stdout : undefined;
  const resize = () => {
    if (window)
      void centralManager.say({ t: 'shell-size', shell, rows: window.rows, cols: window.columns }).catch(reject);
  };
  stdin.on('data', feed).once('end', end);
  window?.on('resize', resize);
  try {
    return await over;
  } finally {
    window?.off('resize', resize);
    stdin.off('data', feed).off('end', end).pause();
    await centralManager.close();
  }
}

async function homeOf(site: Pick<Site, 'describe' | 'close'>): Promise<string> {
  try {
    return (await site.describe()).home;
  } finally {
    await site.close().catch(() => undefined);
  }
}

/** By the command that the site's batch system has for this. */
async function atSite(queue: Queue, paths: Paths, job: JobRecord, request: ShellRequest): Promise<number> {
  const { agent } = queue;
  const record = await loadSite(paths, job.site);
  const name = formatJobId(job.id);
  const backend = record.target.kind === 'gram' ? undefined : backendOf(record.batch);
  if (backend?.beside === undefined) {
    const host = job.attrs.get('RemoteHost')?.replaceAll('"', '') ?? 'a node';
    throw new GryphusError(
      'conflict',
      `Job ${name} runs at ${host}: ${record.batch} has no command that opens a shell beside a running job.`,
      { suggestions: ['Run it in a glidein: gryphus glidein start, and leave grid_resource out of its description.'] },
    );
  }
  const id = await awaitBatchId(queue, job);
  if (id === undefined)
    throw new GryphusError('conflict', `The number that ${record.batch} gave job ${name} is not known yet.`, {
      suggestions: ['Try again in a minute.'],
    });
  const access = { agent, prompt: promptOf(request.ask), paths, identity: job.manager };
  const site = await openSite(record, access);
  const home = await homeOf(site);
  const key = formatAttemptKey({ agent, ...job.id, attempt: job.attempt });
  const transport = await transportTo(record, access);
  try {
    const work = shellQuote(`${home}/jobs/${key}/work`);
    const line = `cd ${work} || exit 255; exec /bin/sh -c ${shellQuote(shellText(request.command, request.tty))}`;
    const channel = await transport.open(`${record.prelude ?? ''}\n${backend.beside(id, line)}`);
    channel.stdout.pipe(request.stdout, { end: false });
    channel.stderr.pipe(request.stderr, { end: false });
    request.stdin.pipe(channel.stdin);
    const closed = await channel.closed;
    request.stdin.unpipe(channel.stdin).pause();
    if (closed.kind === 'lost') throw new GryphusError('site-unreachable', closed.reason.message);
    return closed.kind === 'exited' ? closed.code : 255;
  } finally {
    await transport.close();
  }
}

/** A job that has just started may not have it yet. */
async function awaitBatchId(queue: Queue, { id }: JobRecord): Promise<string | undefined> {
  for (let looks = 0; looks < ID_LOOKS; looks++) {
    const [job] = await queue.get([id]);
    const known = job && batchIdOf(job.attrs);
    if (known !== undefined || job === undefined) return known;
    await sleep(ID_LOOK_MS);
  }
  return undefined;
}
