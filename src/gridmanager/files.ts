import type { Attrs } from '../job/attrs.ts';
import { readBoolean, readNumber, readString, type TextSource } from '../job/values.ts';
import { parseRemaps, transferList } from '../job/transfer-lists.ts';
import { isUrl } from '../staging/url/file-url.ts';
import { wantsContainer } from './container-spec.ts';

/** Where a job's files are at home, all absolute. */
export interface JobFiles {
  readonly iwd: string;
  readonly executable: string;
  /** The executable goes to the site; else it is there under its path. */
  readonly sendExecutable: boolean;
  readonly stdin: string | undefined;
  /** Where the streams go; `undefined`: nobody wants them. */
  readonly stdout: string | undefined;
  readonly stderr: string | undefined;
  /** The job runs in its own directory at the site, and files travel; else it runs in `iwd`, which the site shares. */
  readonly sandbox: boolean;
  /** URLs as they were written. */
  readonly inputs: readonly string[];
  /** Names in the job's directory; `new`: what was not there at the start. */
  readonly outputs: readonly string[] | 'new';
  /** A result's name there → where it goes: absolute, relative to iwd, or a URL. */
  readonly remaps: ReadonlyMap<string, string>;
  /** A URL under which results go that no remap names. */
  readonly outputDestination: string | undefined;
  /** Where results go that no remap names, if not there: absolute; `output_directory`, or iwd. */
  readonly outputDirectory: string;
}

/** HTCondor's numbers (manual, job ClassAd attributes, `JobUniverse`). */
export const UNIVERSE = { vanilla: 5, scheduler: 7, grid: 9, local: 12 } as const;

/**
 * Reads what a job says of its files. A job of the local or scheduler universe, one that says
 * `should_transfer_files = NO`, and one on this machine's own site that neither asks for a transfer nor names files to
 * transfer (IF_NEEDED: they share the file system) runs in its `initialdir`; every other has a directory of its own.
 */
export function jobFiles(ad: Attrs, siteIsHere: boolean): JobFiles {
  const iwd = readString(ad, 'Iwd') ?? '/';
  const at = (name: string) => under(iwd, name);
  // What many jobs share crosses once to a site, whether it is named so or not.
  const listed = ['TransferInput', 'CommonInputFiles', 'PublicInputFiles'].map((name) => readString(ad, name));
  const inputs = [...new Set(listed.flatMap(transferList))];
  const outputs = readString(ad, 'TransferOutput');
  const to = readString(ad, 'OutputDestination');
  const outputDestination = to !== undefined && isUrl(to) ? to.replace(/\/+$/, '') : undefined;
  const outputDirectory = readString(ad, 'OutputDirectory');
  const places = [outputs, outputDestination, outputDirectory];
  const namesFiles = savesItself(ad) || inputs.length > 0 || places.some((one) => one !== undefined);
  const sandbox = needsSandbox(ad, siteIsHere, namesFiles);
  const stream = (name: string) => {
    const path = readString(ad, name);
    return path === undefined || path === '' || path === '/dev/null' ? undefined : at(path);
  };
  return {
    iwd,
    executable: at(readString(ad, 'Cmd') ?? ''),
    sendExecutable: sandbox && readBoolean(ad, 'TransferExecutable') !== false,
    stdin: stream('In'),
    stdout: stream('Out'),
    stderr: stream('Err'),
    sandbox,
    inputs: sandbox ? inputs.map((name) => (isUrl(name) ? name : at(name))) : [],
    outputs: !sandbox ? [] : outputs === undefined ? 'new' : transferList(outputs),
    remaps: parseRemaps(readString(ad, 'TransferOutputRemaps') ?? ''),
    outputDestination,
    outputDirectory: outputDirectory === undefined || outputDirectory === '' ? iwd : at(outputDirectory),
  };
}

/** Its program saves its work now and then, and ends with a code that says so (`checkpoint_exit_code`). */
function savesItself(ad: Attrs): boolean {
  return readNumber(ad, 'JobUniverse') === UNIVERSE.vanilla && ad.has('SuccessCheckpointExitCode');
}

/** Its program has just ended so: it goes on from what it saved. */
export function isCheckpoint(ad: Attrs): boolean {
  if (!savesItself(ad) || ad.has('GryphusSiteCause')) return false;
  return readNumber(ad, 'ExitCode') === readNumber(ad, 'SuccessCheckpointExitCode');
}

/** What it leaves when it is evicted goes on with it (`when_to_transfer_output = ON_EXIT_OR_EVICT`). */
export function keepsAtEviction(ad: TextSource): boolean {
  return readString(ad, 'WhenToTransferOutput')?.toUpperCase() === 'ON_EXIT_OR_EVICT';
}

/** It was evicted from a machine of the pool, and ended there in order. */
export function leavesWork(ad: Attrs): boolean {
  return (
    keepsAtEviction(ad) &&
    readString(ad, 'GryphusSiteCause') === 'preempted' &&
    readBoolean(ad, 'GryphusYielded') === true
  );
}

/** Names in the job's directory that make a checkpoint; without any named, its results. */
export function checkpointFiles(ad: Attrs, files: Pick<JobFiles, 'outputs'>): readonly string[] | 'new' {
  const named = readString(ad, 'TransferCheckpoint');
  return named === undefined ? files.outputs : transferList(named);
}

function needsSandbox(ad: Attrs, siteIsHere: boolean, namesFiles: boolean): boolean {
  const universe = readNumber(ad, 'JobUniverse') ?? UNIVERSE.vanilla;
  if (universe === UNIVERSE.local || universe === UNIVERSE.scheduler) return false;
  const should = (readString(ad, 'ShouldTransferFiles') ?? 'IF_NEEDED').toUpperCase();
  if (should === 'NO') return false;
  // In a container there is nothing of this machine's but what is brought there.
  if (should === 'YES' || namesFiles || wantsContainer(ad) || universe === UNIVERSE.grid) return true;
  return !siteIsHere;
}

/** An absolute path (the trailing slash that means "the contents" stays), or the URL that it is. */
function under(iwd: string, name: string): string {
  return name.startsWith('/') || isUrl(name) ? name : `${iwd.replace(/\/+$/, '')}/${name}`;
}

/** Where a result goes: its remap, or its own name under the URL of all outputs, the directory of all outputs or iwd (directories keep their shape). */
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
