import type { AttemptSpec, Blob, InputFile, SiteFile } from './contract.ts';
import { octalEscape } from './escape.ts';

/** Many small inputs in one archive (tar). */
export interface Pack {
  readonly blob: Blob;
  /** The names that it makes at the top of the job's directory. */
  readonly tops: readonly string[];
}

export interface PackedSpec extends AttemptSpec {
  /** Inputs that are not in `inputs`. */
  readonly packs?: readonly Pack[];
}

/**
 * An attempt's record at the site, as lines ended by `end`: what the wrapper reads, in the order in which it needs it.
 */
export function specLines(spec: PackedSpec, backend: { submitWords(spec: AttemptSpec): readonly string[] }): string[] {
  return [
    ...backend.submitWords(spec).map((word) => `submit ${octalEscape(word)}`),
    // Directly after the submit words, because the wrapper needs it before it takes the lock.
    ...(spec.leaveWithin === undefined ? [] : [`leave ${Math.ceil(spec.leaveWithin)}`]),
    ...(spec.joinStderr ? ['join'] : []),
    ...(spec.core === undefined ? [] : [`core ${spec.core}`]),
    ...(spec.cwd === undefined ? [] : [`cwd ${octalEscape(spec.cwd)}`]),
    ...spec.inputs.flatMap(inputLines),
    ...(spec.packs ?? []).flatMap(packLines),
    ...(spec.stdin === undefined ? [] : [...fileLines(spec.stdin, false), 'stdin']),
    ...Object.entries(spec.env).map(([name, value]) => `env ${octalEscape(`${name}=${value}`)}`),
    ...(spec.proxy === undefined ? [] : [`proxy ${spec.proxy}`]),
    ...(spec.ioProxy === undefined
      ? []
      : [...fileLines(spec.ioProxy.node, true), 'io-node', ...fileLines(spec.ioProxy.program, false), 'io-program']),
    ...fileLines(spec.executable, true),
    'program',
    ...spec.args.map((arg) => `arg ${octalEscape(arg)}`),
    ...adLines(spec.ads),
    'end',
  ];
}

/** Lines that go into files of their own. */
export function adLines(ads: AttemptSpec['ads']): string[] {
  return [
    ...(ads?.job ?? []).map((line) => `ad ${octalEscape(line)}`),
    ...(ads?.machine ?? []).map((line) => `machine ${octalEscape(line)}`),
  ];
}

function inputLines(input: InputFile): string[] {
  if (input.kind === 'directory') return [`dir ${octalEscape(input.name)}`];
  return [...fileLines(input.file, input.executable), `as ${octalEscape(input.name)}`];
}

function packLines({ blob, tops }: Pack): string[] {
  return [...fileLines({ kind: 'blob', blob }, false), ...tops.map((name) => `top ${octalEscape(name)}`), 'unpack'];
}

function fileLines(file: SiteFile, executable: boolean): string[] {
  if (file.kind === 'there') return [`there ${octalEscape(file.path)}`];
  if (file.kind === 'url') return [`url ${octalEscape(file.url)}`];
  return [`blob ${file.blob.sha256} ${file.blob.bytes} ${executable ? 'x' : '-'}`];
}

/** The content that the attempt needs at the site. */
export function blobsOf(spec: PackedSpec) {
  const files = [
    spec.executable,
    ...(spec.ioProxy === undefined ? [] : [spec.ioProxy.node, spec.ioProxy.program]),
    ...(spec.stdin === undefined ? [] : [spec.stdin]),
    ...spec.inputs.flatMap((input) => (input.kind === 'file' ? [input.file] : [])),
  ];
  const packs = (spec.packs ?? []).map(({ blob }) => blob);
  return [...files.flatMap((file) => (file.kind === 'blob' ? [file.blob] : [])), ...packs];
}

/** Why the site could never run this record, in words; undefined if it could. */
export function unfit(spec: AttemptSpec, oneHost?: true): string | undefined {
  const count = spec.resources.nodes?.count ?? 1;
  if (oneHost && count > 1) return `The site gives a job one machine, and this one wants ${count}.`;
  const names = spec.inputs.map((input) => input.name);
  const outside = names.find((name) => name === '' || name.startsWith('/') || name.split('/').includes('..'));
  if (outside !== undefined) return `The input name '${outside}' is outside the job's directory.`;
  const variable = Object.keys(spec.env).find((name) => name === '' || name.includes('='));
  if (variable !== undefined) return `The environment variable name '${variable}' is not valid.`;
  const texts = [...spec.args, ...names, ...Object.entries(spec.env).flat(), spec.cwd ?? ''];
  const nul = texts.find((text) => text.includes('\0'));
  if (nul !== undefined) return 'A NUL byte cannot be part of an argument, a name or a variable.';
  return undefined;
}
