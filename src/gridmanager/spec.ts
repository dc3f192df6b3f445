import { basename } from 'node:path';
import { sharesHome } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { jobAdLines } from '../job/ad-lines.ts';
import type { Attrs } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import { nodesOf } from '../job/nodes.ts';
import { quoted, readBoolean, readNumber, readString } from '../job/values.ts';
import type { JobRecord } from '../queue/api.ts';
import type { AttemptSpec, BatchOptions, InputFile, Resources, SiteFile } from '../site/contract.ts';
import { savedBy } from '../staging/checkpoints.ts';
import { resolveInputs } from '../staging/inputs.ts';
import { isUrl } from '../staging/url/file-url.ts';
import { jobArguments, jobEnvironment } from '../submit/api.ts';
import { oneLine } from '../util/plain-text.ts';
import { plainName } from '../util/plain-name.ts';
import { shellWords } from '../util/shell-words.ts';
import { containerSpec, programInImage, wantsContainer, withoutSlash } from './container-spec.ts';
import type { SiteContext } from './context.ts';
import { inputBytes, keepTransferLimit } from './transfer-limits.ts';
import { presentDagManager } from './dag-manager.ts';
import { isJava, javaArguments } from './java.ts';
import { checkpointFiles, type JobFiles, jobFiles } from './files.ts';

/** Describes one attempt of a job for a site. Rejects with 'input-missing' if an input file does not exist. */
export async function attemptSpec(
  ctx: Pick<SiteContext, 'record' | 'blobs' | 'spool'>,
  key: AttemptKey,
  job: JobRecord,
  proxy?: string,
  fetched: ReadonlyMap<string, InputFile> = new Map(),
): Promise<AttemptSpec> {
  const ad = job.attrs;
  const files = jobFiles(ad, sharesHome(ctx.record));
  refuseOutside(ad, files);
  const saved = await ctx.spool.checkpoints.filesFor(job.id, job.attempt);

  const blob = async (path: string): Promise<SiteFile> => ({ kind: 'blob', blob: await ctx.blobs.blobOf(path) });
  const there = (path: string): SiteFile => ({ kind: 'there', path });
  const brought = await inputs({ ...files, inputs: withoutSlash(ad, files.inputs) }, saved, ctx, fetched);
  const contained = containerSpec(ad, files, brought);
  const executable =
    programInImage(ad) ?? (files.sendExecutable ? await blob(files.executable) : there(files.executable));
  const spec: AttemptSpec = {
    key,
    title: title(ad),
    ...presentDagManager(ad, {
      executable,
      args: isJava(ad) ? javaArguments(ad, files.sandbox) : jobArguments(ad),
      env: { ...nodesEnvironment(ad), ...jobEnvironment(ad) },
    }),
    ...(proxy === undefined ? {} : { proxy }),
    ...coreLimit(ad),
    ...(files.stdin === undefined ? {} : { stdin: files.sandbox ? await blob(files.stdin) : there(files.stdin) }),
    inputs: contained?.inputs ?? brought,
    ...(contained && { container: contained.container }),
    outputs: files.outputs,
    ...(files.sandbox ? {} : { cwd: files.iwd }),
    ...(ctx.record.batch === 'pool' ? forThePool(ad) : {}),
    joinStderr: files.stdout !== undefined && files.stdout === files.stderr,
    resources: resources(ad, ctx.record.walltime),
    batch: batchOptions(ad, ctx.record),
    // The pool already has the ad in `ad`.
    ...(ctx.record.batch === 'pool' ? {} : { ads: adFiles(ad, ctx.record) }),
  };
  if (files.sandbox) keepTransferLimit(ad, 'input', inputBytes(spec, fetched));
  return spec;
}

/** Checks output names again: edits, and attributes set as `+TransferOutput`, bypass the checks made at submit. */
function refuseOutside(ad: Attrs, files: JobFiles): void {
  const checkpoint = checkpointFiles(ad, files);
  const names = [files.outputs, checkpoint].flatMap((some) => (some === 'new' ? [] : some));
  const outside = names.find((name) => plainName(name) === undefined);
  if (outside === undefined) return;
  throw new GryphusError('output-missing', `The output '${oneLine(outside)}' is outside the job's directory.`, {
    suggestions: ['Name files in that directory with `gryphus edit`, then `gryphus release` the job.'],
  });
}

/** `core_size`, from bytes to blocks of 512 bytes; negative means unlimited. */
function coreLimit(ad: Attrs): Pick<AttemptSpec, 'core'> {
  const bytes = readNumber(ad, 'CoreSize');
  if (bytes === undefined || !Number.isFinite(bytes)) return {};
  const blocks = Math.ceil(bytes / 512);
  return { core: bytes < 0 || blocks > Number.MAX_SAFE_INTEGER ? 'unlimited' : String(blocks) };
}

/** The pool matches on the job's ad, and runs a job in place if its worker shares our file system. */
function forThePool(ad: Attrs): Pick<AttemptSpec, 'ad' | 'shared'> {
  const { sandbox, iwd, executable, stdin } = jobFiles(ad, true);
  const others = ad.toRecord();
  for (const name of ['Env', 'Environment']) delete others[name];
  if (sandbox || wantsContainer(ad)) return { ad: others };
  return { ad: others, shared: { cwd: iwd, executable, ...(stdin === undefined ? {} : { stdin }) } };
}

/**
 * Merges local files, files fetched for URLs, and files the job saved in a checkpoint. If two have the same name, the
 * later one wins.
 */
async function inputs(
  { inputs: names, ofNodes }: Pick<JobFiles, 'inputs' | 'ofNodes'>,
  saved: string | undefined,
  { blobs }: Pick<SiteContext, 'blobs'>,
  fetched: ReadonlyMap<string, InputFile>,
): Promise<InputFile[]> {
  const found = new Map<string, InputFile>();
  for (const name of names) {
    const url = fetched.get(name);
    const these = url ? [url] : isUrl(name) ? [] : await resolveInputs([name], blobs);
    const nodes = ofNodes.get(name);
    for (const input of these)
      found.set(`${nodes?.join() ?? ''}/${input.name}`, nodes === undefined ? input : { ...input, nodes });
  }
  for (const { path, node } of saved === undefined ? [] : await savedBy(saved)) {
    const nodes = node === undefined ? {} : { nodes: [node] };
    for (const input of await resolveInputs([`${path}/`], blobs)) {
      const own = input.kind === 'file' ? { ...input, restored: true as const } : input;
      found.set(`${node ?? ''}/${input.name}`, { ...own, ...nodes });
    }
  }
  return [...found.values()];
}

/**
 * The job's ad and the machine ad that the job finds while it runs; the machine ad contains what is known of the site.
 */
function adFiles(ad: Attrs, record: SiteContext['record']): NonNullable<AttemptSpec['ads']> {
  const machine = ['MyType = "Machine"', `GryphusSite = ${quoted(record.name)}`];
  for (const name of ['Cpus', 'Memory', 'Disk', 'GPUs']) {
    const value = readNumber(ad, `Request${name}`);
    if (value !== undefined) machine.push(`${name} = ${Math.ceil(value)}`);
  }
  return { job: jobAdLines(ad), machine };
}

/** The job's name in the site's queue: the batch name or the program's name, in plain ASCII. */
function title(ad: Attrs): string {
  const name = readString(ad, 'JobBatchName') ?? basename(readString(ad, 'Cmd') ?? 'job');
  const plain = name.replaceAll(/[^A-Za-z0-9._-]+/g, '_').slice(0, 60);
  return /^[A-Za-z]/.test(plain) ? plain : `job_${plain}`;
}

/** For the program, and its launcher where that learns the numbers from no batch system. */
function nodesEnvironment(ad: Attrs): Record<string, string> {
  const nodes = nodesOf(ad);
  if (nodes === undefined) return {};
  return {
    GRYPHUS_NODES: String(nodes.count),
    GRYPHUS_RANKS: String(nodes.count * nodes.ranks),
    GRYPHUS_RANKS_PER_NODE: String(nodes.ranks),
  };
}

function resources(ad: Attrs, defaultWalltime: number | undefined): Resources {
  const positive = (name: string) => {
    const value = readNumber(ad, name);
    return value !== undefined && value > 0 ? Math.ceil(value) : undefined;
  };
  const nodes = nodesOf(ad);
  return {
    cpus: nodes?.cpus ?? positive('RequestCpus') ?? 1,
    memoryMb: positive('RequestMemory'),
    diskKb: positive('RequestDisk'),
    gpus: positive('RequestGPUs'),
    walltimeSeconds: positive('BatchRuntime') ?? defaultWalltime,
    ...(readBoolean(ad, 'WholeNodes') === true ? { wholeHost: true } : {}),
    ...(nodes && { nodes: { count: nodes.count, ranks: nodes.ranks } }),
  };
}

function batchOptions(ad: Attrs, record: SiteContext['record']): BatchOptions {
  const queue = readString(ad, 'BatchQueue') ?? record.queue;
  const project = readString(ad, 'BatchProject') ?? record.project;
  const message = readString(ad, 'BatchExtraSubmitArgs') ?? '';
  const extra = shellWords(message) ?? message.split(/\s+/).filter((word) => word !== '');
  const rsl = record.target.kind === 'gram' ? readString(ad, 'GlobusRSL') : undefined;
  return {
    ...(queue === undefined || queue === '' ? {} : { queue }),
    ...(project === undefined || project === '' ? {} : { project }),
    ...(record.parallelEnvironment === undefined ? {} : { parallelEnvironment: record.parallelEnvironment }),
    extraArgs: [...record.extraArgs, ...extra, ...(rsl === undefined ? [] : [rsl])],
  };
}
