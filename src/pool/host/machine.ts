import { readdirSync, readFileSync, statfsSync } from 'node:fs';
import { arch, availableParallelism, freemem, hostname, loadavg, release, totalmem, type } from 'node:os';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import { URL_SCHEMES } from '../../staging/url/schemes.ts';
import { HAS_STAGING_LINKS } from '../wire/staging-link.ts';
import type { Size } from '../wire/wire.ts';

/** The resources that a worker may use; default: all of the machine's. */
export interface Bounds {
  readonly cpus?: number;
  readonly memoryMb?: number;
  readonly diskKb?: number;
  readonly gpus?: number;
  /** The worker has only a part of its node, as a batch job does, and shares the rest with others. */
  readonly part?: boolean;
}

/** `env`: the worker's environment, in which batch systems say what its allocation is. */
export function measure(dir: string, bounds: Bounds, env: NodeJS.ProcessEnv): Size {
  const cores = availableParallelism();
  const cpus = bounds.cpus ?? cores;
  const node: Node = { cores, memory: totalmem(), limit: process.constrainedMemory(), gpus: gpus() };
  return {
    cpus,
    memoryMb: bounds.memoryMb ?? memoryOf(cpus, bounds.part === true, node, env),
    diskKb: bounds.diskKb ?? freeDiskKb(dir),
    gpus: bounds.gpus ?? gpusOf(bounds.part === true, node, env),
  };
}

/** The machine that a worker is on. Sizes in bytes. */
export interface Node {
  readonly cores: number;
  readonly memory: number;
  /** Our cgroup's limit; 0, or more than there is, means none. */
  readonly limit: number | undefined;
  readonly gpus: number;
}

/**
 * MB: the limit that applies to us, or else all; for a part of a node with no known limit, a share proportional to its
 * cores.
 */
export function memoryOf(cpus: number, part: boolean, { cores, memory, limit }: Node, env: NodeJS.ProcessEnv): number {
  const all = Math.floor(memory / 2 ** 20);
  const bounds = [
    limit === undefined || limit === 0 ? Number.NaN : Math.floor(limit / 2 ** 20),
    ...(part ? [Number(env['SLURM_MEM_PER_NODE'] ?? 'x'), Number(env['SLURM_MEM_PER_CPU'] ?? 'x') * cpus] : []),
  ].filter((bound) => bound > 0 && bound < all);
  if (bounds.length > 0) return Math.min(...bounds);
  return part && cpus < cores ? Math.floor((all * cpus) / cores) : all;
}

/**
 * For a part of a node, the GPUs that the batch system allocated: it lists them, or, like Slurm, sets nothing if there
 * are none.
 */
export function gpusOf(part: boolean, { gpus: all }: Node, env: NodeJS.ProcessEnv): number {
  if (!part) return all;
  const visible = env['CUDA_VISIBLE_DEVICES'];
  if (visible !== undefined) return visible.split(',').filter((id) => /^[^-\s]/.test(id) && id !== 'NoDevFiles').length;
  return env['SLURM_JOB_ID'] === undefined ? all : 0;
}

export function freeDiskKb(dir: string): number {
  const { bavail, bsize } = statfsSync(dir);
  return Math.floor((bavail * bsize) / 1024);
}

function gpus(): number {
  try {
    return readdirSync('/proc/driver/nvidia/gpus').length;
  } catch {
    return 0;
  }
}

/** HTCondor's names for architectures (manual, machine ClassAd attributes, `Arch`). */
const ARCH: Readonly<Record<string, string>> = { x64: 'X86_64', arm64: 'aarch64', ppc64: 'ppc64le', ia32: 'INTEL' };

/** Every worker can transfer files; URLs are fetched and stored by the agent, wherever a job runs. */
export const TRANSFERS: AttrTexts = {
  HasFileTransfer: 'true',
  // All transfers are encrypted.
  HasPerFileEncryption: 'true',
  HasFileTransferPluginMethods: quoted(URL_SCHEMES.join(',')),
};

/** This machine's architecture and operating system, by HTCondor's names. */
export function platform(): { readonly Arch: string; readonly OpSys: string } {
  return { Arch: quoted(ARCH[arch()] ?? arch()), OpSys: quoted(type().toUpperCase()) };
}

/**
 * The part of the machine's ad that is constant while the worker runs. `name`: the worker's name, unique in the pool.
 */
export function machineAd(name: string, size: Size, more: AttrTexts): AttrTexts {
  const os = osRelease();
  return {
    MyType: quoted('Machine'),
    Name: quoted(`slot1@${name}`),
    Machine: quoted(hostname()),
    ...platform(),
    ...(os === undefined ? {} : os),
    UtsnameRelease: quoted(release()),
    PartitionableSlot: 'true',
    SlotType: quoted('Partitionable'),
    SlotID: '1',
    SlotWeight: 'Cpus',
    DetectedCpus: String(availableParallelism()),
    DetectedMemory: String(Math.floor(totalmem() / 2 ** 20)),
    TotalCpus: String(size.cpus),
    TotalMemory: String(size.memoryMb),
    TotalDisk: String(size.diskKb),
    TotalGPUs: String(size.gpus),
    // Jobs' Requirements refer to it: for versions below 25.12 they check the machine's disk.
    CondorVersion: quoted('$CondorVersion: 25.0.0 2025-01-01 Gryphus $'),
    ...TRANSFERS,
    HasSelfCheckpointTransfers: 'true',
    // Files of running jobs come while they grow (`stream_results`).
    HasStreamResults: 'true',
    // Results of a partner's job go to its gateway without ours, if that can be dialled.
    HasDirectResults: 'true',
    // So do its inputs come.
    HasDirectInputs: 'true',
    // Large files come and go by a connection of their own.
    [HAS_STAGING_LINKS]: 'true',
    HasReconnect: 'true',
    START: 'true',
    Rank: '0.0',
    Requirements: 'START && WithinResourceLimits',
    WithinResourceLimits:
      'TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory && TARGET.RequestDisk <= MY.Disk && (TARGET.RequestGPUs ?: 0) <= MY.GPUs',
    ...more,
  };
}

/** The part of the ad that changes. `endsAt`: Unix seconds of the end of its allocation. */
export function changingAd(now: number, endsAt: number | undefined): AttrTexts {
  const [load = 0] = loadavg();
  return {
    LoadAvg: load.toFixed(2),
    FreeMemoryMb: String(Math.floor(freemem() / 2 ** 20)),
    // HTCondor's value for a machine without an end.
    TimeToLive: String(endsAt === undefined ? 2_147_483_647 : Math.max(0, Math.floor(endsAt - now))),
    LastHeardFrom: String(Math.floor(now)),
  };
}

function osRelease(): AttrTexts | undefined {
  try {
    const text = readFileSync('/etc/os-release', 'utf8');
    const field = (name: string) => new RegExp(`^${name}="?([^"\n]*)"?$`, 'm').exec(text)?.[1];
    const name = (field('NAME') ?? 'Linux').split(/[ /]/)[0] ?? 'Linux';
    const major = (field('VERSION_ID') ?? '').split('.')[0] ?? '';
    return {
      OpSysAndVer: quoted(`${name}${major}`),
      OpSysName: quoted(name),
      ...(major === '' ? {} : { OpSysMajorVer: major }),
    };
  } catch {
    return undefined;
  }
}
