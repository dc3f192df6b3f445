import { randomBytes } from 'node:crypto';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Paths } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import type { SiteRecord } from '../config/sites.ts';
import { submitCluster } from '../enqueue/enqueue.ts';
import { GryphusError } from '../errors.ts';
import { quoted } from '../job/values.ts';
import { poolPlaces } from '../pool/host/places.ts';
import { Tokens } from '../pool/wire/tokens.ts';
import type { WorkerConfig } from '../pool/wire/worker-config.ts';
import type { Queue } from '../queue/api.ts';
import { GLIDEIN_NODE, POOL_WANTED, WHOLE } from '../queue/tables.ts';
import { writeWhole } from '../util/private-file.ts';
import { type GlideinBatch, Batches } from './batch.ts';
import { nodeArch, type NodeBinary, nodeFor } from '../staging/node-package.ts';

export interface GlideinOrder {
  readonly site: SiteRecord;
  readonly count: number;
  readonly cores: number;
  readonly memoryMb: number | undefined;
  readonly gpus: number;
  /** Seconds. */
  readonly walltime: number;
  readonly by: GlideinBatch['by'];
  /** The site's machines as `uname -m` names them; `undefined`: the same as ours. */
  readonly machine: string | undefined;
}

export interface OrderWorld {
  readonly queue: Queue;
  readonly paths: Paths;
  readonly settings: Settings;
  readonly owner: string;
  readonly log: (message: string, facts?: object) => void;
  /** Unix seconds. */
  readonly now: () => number;
}

/** About how much memory Node itself takes, in KB. */
const NODE_MEMORY_KB = 100_000;
/** How many seconds a token stays valid after it was last renewed; renewed while its pilot waits and runs. */
export const TOKEN_LIFE = 3600;
/** The path from a JobManager's job, whose directory is `jobs/KEY/work`, to the file with the ways home. */
const WAYS_FILE = '../../../ways.json';
const MOST_AT_ONCE = 1000;

/**
 * Requests pilots: their tokens and description go to disk first, then one cluster of ordinary jobs is submitted. After
 * a crash in between, `tend` finds the cluster by the batch's name, or revokes the tokens.
 */
export async function orderGlideins(world: OrderWorld, order: GlideinOrder): Promise<GlideinBatch> {
  const { paths, settings, queue, owner, now } = world;
  const { site, count } = order;
  if (site.batch === 'pool') throw new GryphusError('bad-input', 'Glideins cannot be sent to the pool itself.');
  if (site.target.kind === 'gram') {
    throw new GryphusError(
      'bad-input',
      `${site.name} is a GRAM service, from which workers have no reverse connection.`,
      {
        suggestions: ['Send glideins over ssh, if the site has it: gryphus site add.'],
      },
    );
  }
  if (count < 1 || count > MOST_AT_ONCE) {
    throw new GryphusError('bad-input', `${count} glideins at once: ask for 1 to ${MOST_AT_ONCE}.`);
  }
  const repository = join(paths.stateDir, 'repository');
  const node = await nodeFor(nodeArch(order.machine ?? 'x86_64'), {
    repository,
    from: settings['glidein.node'],
    log: world.log,
  });
  await GLIDEIN_NODE.set(queue.kv, site.name, node.sha256);
  // The central manager must be running when the first pilot comes home.
  await POOL_WANTED.set(queue.kv, WHOLE, Date.now());

  const batches = new Batches(paths.stateDir);
  const tokens = new Tokens(poolPlaces(paths).dir);
  const id = randomBytes(5).toString('hex');
  const issued = Array.from({ length: count }, () =>
    tokens.issue({ site: site.name, local: false, cpus: order.cores, expires: now() + TOKEN_LIFE }),
  );
  let batch: GlideinBatch = {
    id,
    site: site.name,
    tokens: issued.map((token) => token.id),
    cores: order.cores,
    ...(order.memoryMb === undefined ? {} : { memoryMb: order.memoryMb }),
    walltime: order.walltime,
    made: now(),
    by: order.by,
    over: [],
  };
  batches.save(batch);
  const dir = batches.dir(id);
  for (const [proc, token] of issued.entries()) {
    const name = `${site.name}-${id}-${proc}`;
    const config = workerConfig(settings, order, { ...token, name, glidein: id });
    writeWhole(join(dir, `pilot-${proc}.json`), JSON.stringify(config));
  }
  const worker = carried(repository, 'worker.mjs', new URL('../worker.mjs', import.meta.url));
  const helper = nativeFor('gryphus-helper', node, repository);
  const remote = nativeFor('gryphus-remote-io', node, repository);
  writeWhole(
    join(dir, 'need'),
    need(settings, order, {
      node,
      worker: worker.sha256,
      helper: helper?.sha256 ?? '',
      remote: remote?.sha256 ?? '',
      made: now(),
    }),
  );
  const at = (path: string): string => relative(paths.stateDir, path);
  const text = description(order, id, {
    pilot: at(carried(repository, 'pilot.sh', new URL('pilot.sh', import.meta.url)).path),
    worker: at(worker.path),
    helpers: [helper, remote].flatMap((one) => (one ? [at(one.path)] : [])),
    node: at(node.path),
    dir: at(dir),
  });
  const { cluster } = await submitCluster(queue, { text, file: '-', cwd: paths.stateDir }, paths, owner);
  batch = { ...batch, cluster };
  batches.save(batch);
  return batch;
}

export function batchName(id: string): string {
  return `glidein-${id}`;
}

interface Worker {
  readonly id: string;
  readonly secret: string;
  readonly name: string;
  readonly glidein: string;
}

function workerConfig(settings: Settings, order: GlideinOrder, worker: Worker): object {
  const config: Omit<WorkerConfig, 'dir' | 'endsAt'> = {
    token: worker.id,
    secret: worker.secret,
    name: worker.name,
    site: order.site.name,
    waysFile: WAYS_FILE,
    ways: [],
    cpus: order.cores,
    part: true,
    ...(order.memoryMb === undefined ? {} : { memoryMb: order.memoryMb }),
    limitMemory: settings['pool.limit_memory'],
    cgroups: settings['pool.cgroups'],
    runAs: settings['pool.run_as'],
    checkpointEngines: settings['pool.checkpoint_engines'],
    idleSeconds: settings['glidein.idle'],
    loneSeconds: settings['glidein.lease'],
    resources: order.site.glidein.resources,
    policy: { name: order.site.glidein.policy, expressions: {} },
    attributes: {
      ...order.site.glidein.attributes,
      GryphusGlidein: quoted(worker.glidein),
      GryphusPilot: quoted(worker.id),
      IsGlidein: 'true',
    },
  };
  // The pilot fills this in, since its allocation begins only when it starts.
  return { ...config, endsAt: '@ENDS@' };
}

/** `worker`, `helper` and `remote`: their SHA-256, '' if there is none. */
interface Sent {
  readonly node: NodeBinary;
  readonly worker: string;
  readonly helper: string;
  readonly remote: string;
  readonly made: number;
}

function need(settings: Settings, order: GlideinOrder, { node, worker, helper, remote, made }: Sent): string {
  return Object.entries({
    'disk-kb': Math.floor(settings['glidein.disk'] / 1024),
    'memory-kb': order.memoryMb === undefined ? NODE_MEMORY_KB : NODE_MEMORY_KB + order.memoryMb * 512,
    glibc: node.glibc,
    arch: node.arch,
    'node-sha256': node.sha256,
    'worker-sha256': worker,
    'helper-sha256': helper,
    'remote-io-sha256': remote,
    made: Math.floor(made),
    walltime: Math.floor(order.walltime),
    scratch: order.site.glidein.scratch,
  })
    .map(([name, value]) => `${name} ${value}\n`)
    .join('');
}

interface Files {
  readonly pilot: string;
  readonly worker: string;
  readonly helpers: readonly string[];
  readonly node: string;
  readonly dir: string;
}

/** Names are relative to the state directory, whose path may be anything. */
function description(order: GlideinOrder, id: string, files: Files): string {
  const { site } = order;
  return [
    'universe = grid',
    `grid_resource = batch ${site.batch} ${site.name}`,
    `executable = ${files.pilot}`,
    'arguments = pilot-$(ProcId).json',
    `transfer_input_files = ${[files.node, files.worker, ...files.helpers].join(', ')}, ${files.dir}/need, ${files.dir}/pilot-$(ProcId).json`,
    'transfer_output_files = ""',
    'should_transfer_files = YES',
    `output = ${files.dir}/out-$(ProcId)`,
    `error = ${files.dir}/err-$(ProcId)`,
    `request_cpus = ${order.cores}`,
    ...(order.memoryMb === undefined ? [] : [`request_memory = ${order.memoryMb}`]),
    ...(order.gpus === 0 ? [] : [`request_gpus = ${order.gpus}`]),
    `batch_runtime = ${Math.floor(order.walltime)}`,
    `batch_name = ${batchName(id)}`,
    'notification = never',
    `+GryphusGlidein = ${quoted(id)}`,
    `queue ${order.count}`,
    '',
  ].join('\n');
}

/** A program of native/ for the processor of the nodes, if it was built. */
function nativeFor(name: string, node: NodeBinary, repository: string): ReturnType<typeof carried> | undefined {
  const from = new URL(`../native/${node.arch}/${name}`, import.meta.url);
  return existsSync(from) ? carried(repository, name, from) : undefined;
}

/**
 * Copies a file of ours to a name with its content's hash, so that a newer version does not change what waits in a
 * queue.
 */
function carried(repository: string, name: string, from: URL): { readonly path: string; readonly sha256: string } {
  const source = fileURLToPath(from);
  const sha256 = createHash('sha256').update(readFileSync(source)).digest('hex');
  const directory = join(repository, sha256.slice(0, 16));
  const path = join(directory, name);
  if (existsSync(path)) return { path, sha256 };
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  copyFileSync(source, `${path}.${process.pid}`);
  chmodSync(`${path}.${process.pid}`, 0o700);
  renameSync(`${path}.${process.pid}`, path);
  return { path, sha256 };
}
