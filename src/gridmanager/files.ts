import type { Attrs } from '../job/attrs.ts';
import { UNIVERSE } from '../job/universe.ts';
import { isParallel, namesNode, nodeNumbers, withNode } from '../job/parallel-node.ts';
import { readBoolean, readNumber, readString, type TextSource } from '../job/values.ts';
import { parseRemaps, transferList } from '../job/transfer-lists.ts';
import { CHECKPOINT_IMAGE } from '../staging/asked-for.ts';
import { isUrl } from '../staging/url/file-url.ts';
import { wantsContainer } from './container-spec.ts';
import { isJava } from './java.ts';

/** Where a job's files are on this machine; all paths are absolute. */
export interface JobFiles {
  readonly iwd: string;
  readonly executable: string;
  /** Whether the executable is transferred; otherwise the site has it under the same path. */
  readonly sendExecutable: boolean;
  readonly stdin: string | undefined;
  /** Where the streams go; `undefined`: they are discarded. */
  readonly stdout: string | undefined;
  readonly stderr: string | undefined;
  /**
   * Whether the job runs in its own directory at the site, with file transfer; otherwise it runs in `iwd`, which the
   * site shares.
   */
  readonly sandbox: boolean;
  /** Absolute paths, and URLs as written. */
  readonly inputs: readonly string[];
  /** Of a parallel job: the inputs that only some of its nodes get, whose names contain `$(Node)`, and which nodes. */
  readonly ofNodes: ReadonlyMap<string, readonly number[]>;
  /** Names in the job's directory; `new`: all files that were not there at the start. */
  readonly outputs: readonly string[] | 'new';
  /** Patterns of the files that go home while they grow, and at the end (`stream_results`). */
  readonly patterns: readonly string[];
  /** Maps the name of an output file at the site to its destination: absolute, relative to iwd, or a URL. */
  readonly remaps: ReadonlyMap<string, string>;
  /** URL prefix for results without a remap. */
  readonly outputDestination: string | undefined;
  /** Absolute directory for results without a remap if `outputDestination` is not set: `output_directory`, or iwd. */
  readonly outputDirectory: string;
}

/**
 * Reads from a job's ad which files it has. A job runs in its `initialdir` if it is in the local or scheduler universe,
 * if it has `should_transfer_files = NO`, or if it is at this machine's own site and neither requests a transfer nor
 * names files to transfer (IF_NEEDED: the file system is shared). Every other job has a directory of its own.
 */
export function jobFiles(ad: Attrs, siteIsHere: boolean): JobFiles {
  const read = siteIsHere ? READ_HERE : READ_AWAY;
  const known = read.get(ad);
  if (known) return known;
  const files = readFiles(ad, siteIsHere);
  read.set(ad, files);
  return files;
}

/** Attributes never change, and each step of a job's life asks several times. */
const READ_HERE = new WeakMap<Attrs, JobFiles>();
const READ_AWAY = new WeakMap<Attrs, JobFiles>();

function readFiles(ad: Attrs, siteIsHere: boolean): JobFiles {
  const iwd = readString(ad, 'Iwd') ?? '/';
  const at = (name: string) => under(iwd, name);
  // Files common to many jobs are sent to a site only once anyway, whether they are listed as common or not.
  const listed = ['TransferInput', 'CommonInputFiles', 'PublicInputFiles'].map((name) => readString(ad, name));
  const named = [...new Set(listed.flatMap(transferList))];
  const { inputs, ofNodes } = forNodes(ad, named, (name) => (isUrl(name) ? name : at(name)));
  const outputs = readString(ad, 'TransferOutput');
  const to = readString(ad, 'OutputDestination');
  const outputDestination = to !== undefined && isUrl(to) ? to.replace(/\/+$/, '') : undefined;
  const outputDirectory = readString(ad, 'OutputDirectory');
  const patterns = transferList(readString(ad, 'StreamResults'));
  const places = [outputs, outputDestination, outputDirectory];
  const namesFiles =
    savesItself(ad) ||
    wantsCheckpoint(ad) ||
    wantsRemoteIo(ad) ||
    inputs.length > 0 ||
    patterns.length > 0 ||
    places.some((one) => one !== undefined);
  const sandbox = needsSandbox(ad, siteIsHere, namesFiles);
  const stream = (name: string) => {
    const path = readString(ad, name);
    return path === undefined || path === '' || path === '/dev/null' ? undefined : at(path);
  };
  return {
    iwd,
    // In the PATH, wherever that is.
    executable: isJava(ad) ? 'java' : at(readString(ad, 'Cmd') ?? ''),
    sendExecutable: sandbox && !isJava(ad) && readBoolean(ad, 'TransferExecutable') !== false,
    stdin: stream('In'),
    stdout: stream('Out'),
    stderr: stream('Err'),
    sandbox,
    inputs: sandbox ? inputs : [],
    ofNodes,
    outputs: !sandbox ? [] : outputs === undefined ? 'new' : transferList(outputs),
    patterns: sandbox ? patterns : [],
    remaps: parseRemaps(readString(ad, 'TransferOutputRemaps') ?? ''),
    outputDestination,
    outputDirectory: outputDirectory === undefined || outputDirectory === '' ? iwd : at(outputDirectory),
  };
}

/** The inputs of all nodes, and which of them are not for all: those whose names contain `$(Node)`. */
function forNodes(
  ad: Attrs,
  named: readonly string[],
  whole: (name: string) => string,
): Pick<JobFiles, 'inputs' | 'ofNodes'> {
  const some = named.filter((name) => namesNode(name));
  const all = named.filter((name) => !namesNode(name)).map(whole);
  const ofNodes = new Map<string, number[]>();
  for (const name of some)
    for (const node of nodeNumbers(ad)) {
      const path = whole(withNode(name, node));
      if (!all.includes(path)) ofNodes.set(path, [...(ofNodes.get(path) ?? []), node]);
    }
  return { inputs: [...all, ...ofNodes.keys()], ofNodes };
}

/**
 * Whether the program checkpoints itself and then exits with `checkpoint_exit_code`; of a parallel job, that of its first
 * node.
 */
export function savesItself(ad: Attrs): boolean {
  const may = readNumber(ad, 'JobUniverse') === UNIVERSE.vanilla || isParallel(ad);
  return may && ad.has('SuccessCheckpointExitCode');
}

/** Whether it is checkpointed by the pool, without its own doing (`want_checkpoint`). */
export function wantsCheckpoint(ad: TextSource): boolean {
  return readNumber(ad, 'JobUniverse') === UNIVERSE.vanilla && readBoolean(ad, 'WantCheckpoint') === true;
}

/** Whether its calls about files at home are answered from there (`want_remote_io`). */
function wantsRemoteIo(ad: TextSource): boolean {
  return readNumber(ad, 'JobUniverse') === UNIVERSE.vanilla && readBoolean(ad, 'WantRemoteIO') === true;
}

/** Whether the program has just exited after a checkpoint, to be continued from it. */
export function isCheckpoint(ad: Attrs): boolean {
  if (!savesItself(ad) || ad.has('GryphusSiteCause')) return false;
  return readNumber(ad, 'ExitCode') === readNumber(ad, 'SuccessCheckpointExitCode');
}

/** Whether the files it leaves at eviction are kept for its next run (`when_to_transfer_output = ON_EXIT_OR_EVICT`). */
export function keepsAtEviction(ad: TextSource): boolean {
  return readString(ad, 'WhenToTransferOutput')?.toUpperCase() === 'ON_EXIT_OR_EVICT';
}

/** Whether it was evicted from a pool machine and checkpointed, or shut down cleanly, so that its files can be kept. */
export function leavesWork(ad: Attrs): boolean {
  return (
    (keepsAtEviction(ad) || wantsCheckpoint(ad)) &&
    readString(ad, 'GryphusSiteCause') === 'preempted' &&
    readBoolean(ad, 'GryphusYielded') === true
  );
}

/** Names in the job's directory that make up a checkpoint; by default, its outputs. */
export function checkpointFiles(ad: Attrs, files: Pick<JobFiles, 'outputs'>): readonly string[] | 'new' {
  if (wantsCheckpoint(ad)) return [CHECKPOINT_IMAGE];
  const named = readString(ad, 'TransferCheckpoint');
  return named === undefined ? files.outputs : transferList(named);
}

function needsSandbox(ad: Attrs, siteIsHere: boolean, namesFiles: boolean): boolean {
  const universe = readNumber(ad, 'JobUniverse') ?? UNIVERSE.vanilla;
  if (universe === UNIVERSE.local || universe === UNIVERSE.scheduler) return false;
  const should = (readString(ad, 'ShouldTransferFiles') ?? 'IF_NEEDED').toUpperCase();
  if (should === 'NO') return false;
  // A container sees none of this machine's files except those transferred into it.
  if (should === 'YES' || namesFiles || wantsContainer(ad) || universe === UNIVERSE.grid) return true;
  return !siteIsHere;
}

/** An absolute path (a trailing slash, which means "the contents", is kept), or the URL unchanged. */
function under(iwd: string, name: string): string {
  return name.startsWith('/') || isUrl(name) ? name : `${iwd.replace(/\/+$/, '')}/${name}`;
}

/**
 * Where an output goes: its remap, or its own name under `output_destination`, `output_directory` or iwd.
 * Subdirectories are preserved.
 */
export function destination(files: JobFiles, name: string): string {
  const whole = files.remaps.get(name);
  if (whole !== undefined) return under(files.iwd, whole);
  for (let cut = name.lastIndexOf('/'); cut > 0; cut = name.lastIndexOf('/', cut - 1)) {
    const moved = files.remaps.get(name.slice(0, cut));
    if (moved !== undefined) return under(files.iwd, `${moved}${name.slice(cut)}`);
  }
  if (files.outputDestination === undefined) return under(files.outputDirectory, name);
  return `${files.outputDestination}/${name.split('/').map(encodeURIComponent).join('/')}`;
}
