import type { Attrs } from '../job/attrs.ts';
import { readBoolean, readNumber, readString } from '../job/values.ts';

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
  readonly inputs: readonly string[];
  /** Names in the job's directory; `new`: what was not there at the start. */
  readonly outputs: readonly string[] | 'new';
  /** A result's name there → where it goes, absolute or relative to iwd. */
  readonly remaps: ReadonlyMap<string, string>;
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
  const inputs = list(readString(ad, 'TransferInput'));
  const outputs = readString(ad, 'TransferOutput');
  const sandbox = needsSandbox(ad, siteIsHere, inputs.length > 0 || outputs !== undefined);
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
    inputs: sandbox ? inputs.map(at) : [],
    outputs: !sandbox ? [] : outputs === undefined ? 'new' : list(outputs),
    remaps: parseRemaps(readString(ad, 'TransferOutputRemaps') ?? ''),
  };
}

function needsSandbox(ad: Attrs, siteIsHere: boolean, namesFiles: boolean): boolean {
  const universe = readNumber(ad, 'JobUniverse') ?? UNIVERSE.vanilla;
  if (universe === UNIVERSE.local || universe === UNIVERSE.scheduler) return false;
  const should = (readString(ad, 'ShouldTransferFiles') ?? 'IF_NEEDED').toUpperCase();
  if (should === 'NO') return false;
  if (should === 'YES' || namesFiles || universe === UNIVERSE.grid) return true;
  return !siteIsHere;
}

/** An absolute path; the trailing slash that means "the contents" stays. */
function under(iwd: string, name: string): string {
  return name.startsWith('/') ? name : `${iwd.replace(/\/+$/, '')}/${name}`;
}

/** Comma-separated names, blanks around them dropped (HTCondor's manual, `transfer_input_files`). */
function list(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** `name = newname ; name2 = newname2`, with `\;` and `\=` for the characters themselves (manual, `transfer_output_remaps`). */
export function parseRemaps(text: string): ReadonlyMap<string, string> {
  const remaps = new Map<string, string>();
  for (const entry of splitEscaped(text, ';')) {
    const [from, ...to] = splitEscaped(entry, '=');
    if (from?.trim() && to.length > 0) remaps.set(unescape(from), unescape(to.join('=')));
  }
  return remaps;
}

function splitEscaped(text: string, separator: string): string[] {
  const parts: string[] = [];
  let part = '';
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\' && i + 1 < text.length) part += `\\${text[++i]}`;
    else if (text[i] === separator) {
      parts.push(part);
      part = '';
    } else part += text[i];
  }
  return [...parts, part];
}

function unescape(text: string): string {
  return text.trim().replaceAll(/\\([;=\\])/g, '$1');
}

/** Where a result goes at home: its remap, or its own name under iwd (directories keep their shape). */
export function destination(files: JobFiles, name: string): string {
  const whole = files.remaps.get(name);
  if (whole !== undefined) return under(files.iwd, whole);
  for (let cut = name.lastIndexOf('/'); cut > 0; cut = name.lastIndexOf('/', cut - 1)) {
    const moved = files.remaps.get(name.slice(0, cut));
    if (moved !== undefined) return under(files.iwd, `${moved}${name.slice(cut)}`);
  }
  return under(files.iwd, name);
}
