import { GryphusError } from '../errors.ts';
import type { Attrs } from '../job/attrs.ts';
import { readNumber } from '../job/values.ts';
import type { AttemptSpec, InputFile, SiteFile } from '../site/contract.ts';

const MIB = 1024 * 1024;

const LIMITS = {
  input: { attribute: 'MaxTransferInputMB', command: 'max_transfer_input_mb', code: 'input-too-large' },
  output: { attribute: 'MaxTransferOutputMB', command: 'max_transfer_output_mb', code: 'output-too-large' },
} as const;

/** Throws if the files are larger than the job allows; a negative limit is none. HTCondor's MB are MiB. */
export function keepTransferLimit(ad: Attrs, way: keyof typeof LIMITS, bytes: number): void {
  const { attribute, command, code } = LIMITS[way];
  const most = readNumber(ad, attribute);
  if (most === undefined || !(most >= 0) || bytes <= most * MIB) return;
  const sizes = `The ${way} files have ${bytes} bytes (${(bytes / MIB).toFixed(1)} MB), more than ${command} = ${most}`;
  throw new GryphusError(code, `${sizes}: raise ${attribute} with \`gryphus edit\`, then \`gryphus release\` the job.`);
}

/** Whether how much the job brings home is limited. */
export function limitsOutput(ad: Attrs): boolean {
  return (readNumber(ad, LIMITS.output.attribute) ?? -1) >= 0;
}

/** The bytes of a job's own files at home: not what was fetched for URLs, nor what it saved in a checkpoint. */
export function inputBytes(
  { executable, stdin, inputs }: Pick<AttemptSpec, 'executable' | 'stdin' | 'inputs'>,
  fetched: ReadonlyMap<string, InputFile>,
): number {
  const urls = new Set([...fetched.values()].map(({ name }) => name));
  const own = inputs.flatMap((input) => {
    return input.kind === 'file' && input.restored !== true && !urls.has(input.name) ? [input.file] : [];
  });
  return [executable, ...(stdin === undefined ? [] : [stdin]), ...own].reduce((sum, file) => sum + sizeOf(file), 0);
}

function sizeOf(file: SiteFile): number {
  return file.kind === 'blob' ? file.blob.bytes : 0;
}
