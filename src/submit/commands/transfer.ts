import { wrongRemaps } from '../../job/transfer-lists.ts';
import { sizeOf } from '../calculate.ts';
import { patternFault } from '../../util/name-patterns.ts';
import { plainName } from '../../util/plain-name.ts';
import type { JobMaker, Step } from '../maker.ts';
import { stripQuotes, tokens } from '../text.ts';
import { checkInput } from './streams.ts';
import { UNIVERSE } from '../../job/universe.ts';

type Should = 'YES' | 'NO' | 'IF_NEEDED';
type When = 'ON_EXIT' | 'ON_EXIT_OR_EVICT' | 'ON_SUCCESS' | 'NEVER';

const SHOULD: Readonly<Record<string, Should>> = {
  yes: 'YES', true: 'YES', always: 'YES', no: 'NO', false: 'NO', never: 'NO', if_needed: 'IF_NEEDED', auto: 'IF_NEEDED',
}; // biome-ignore format: a table
/** HTCondor treats `never` as ON_EXIT. */
const WHEN: Readonly<Record<string, When>> = {
  on_exit: 'ON_EXIT', onexit: 'ON_EXIT', on_exit_or_evict: 'ON_EXIT_OR_EVICT', always: 'ON_EXIT_OR_EVICT',
  on_success: 'ON_SUCCESS', onsuccess: 'ON_SUCCESS', never: 'ON_EXIT', false: 'ON_EXIT', none: 'NEVER', null: 'NEVER',
}; // biome-ignore format: a table

/** Whether files of this job are transferred. */
export function shouldTransfer(text: string | undefined): Should | undefined {
  return text === undefined ? undefined : SHOULD[text.toLowerCase()];
}

function fileList(job: JobMaker, command: string, other: string): string[] | undefined {
  const text = job.param(command, other);
  return text === undefined ? undefined : tokens(stripQuotes(text), ',');
}

/** What is transferred to the job besides its program, and the total size. */
interface Inputs {
  readonly names: string[];
  given: boolean;
  kb: number;
}

function addInput(job: JobMaker, inputs: Inputs, name: string): void {
  inputs.names.push(name);
  inputs.given = true;
  inputs.kb += job.sizeKb(name);
}

function containerSource(job: JobMaker, image: string): string | undefined {
  if (job.draft.bool('TransferContainer') === false || image.startsWith('/cvmfs/')) return 'local';
  return ['docker', 'oras'].find((scheme) => image.startsWith(`${scheme}://`));
}

/** A container's image is transferred like an input, unless the machine has it or fetches it. */
function addContainer(job: JobMaker, inputs: Inputs): void {
  if (job.draft.bool('TransferContainer') === false) return job.setString('ContainerImageSource', 'local');
  const image = job.param('container_image', 'ContainerImage');
  if (image === undefined) return;
  const source = containerSource(job, image);
  if (source !== undefined) return job.setString('ContainerImageSource', source);
  addInput(job, inputs, image);
  const name = image.replace(/\/$/, '');
  job.setString('ContainerImage', name.slice(name.lastIndexOf('/') + 1));
  job.setString('ContainerImageFullPath', image);
  const colon = name.indexOf(':');
  job.setString('ContainerImageSource', colon < 0 ? 'cedar' : name.slice(0, colon));
}

/** Like condor_submit's, our dry run accepts such a file even if it is missing. */
function checkShared(job: JobMaker, name: string, command: string, other: string): void {
  if (!job.scope.policy.dryRun) checkInput(job, name, command, other);
}

function collectInputs(job: JobMaker): Inputs {
  const inputs: Inputs = { names: [], given: false, kb: 0 };
  for (const name of fileList(job, 'transfer_input_files', 'TransferInputFiles') ?? []) {
    checkInput(job, name, 'transfer_input_files', 'TransferInputFiles');
    addInput(job, inputs, name);
  }
  const common = job.param('transfer_common_input', 'CommonInputFiles') ?? job.param('common_input_files');
  if (common !== undefined) {
    const names = tokens(stripQuotes(common), ',');
    for (const name of names) checkShared(job, name, 'transfer_common_input', 'CommonInputFiles');
    job.setString('CommonInputFiles', names.join(','));
  }
  if (job.kind.container) addContainer(job, inputs);
  const input = job.draft.string('In') ?? '';
  if ((job.draft.bool('TransferIn') ?? true) && input !== '') inputs.kb += job.sizeKb(input);
  return inputs;
}

interface Plan {
  readonly should: Should;
  readonly when: When;
}

function contradiction(job: JobMaker, should: string, when: string): Error {
  return job.fault(
    'when_to_transfer_output',
    `WhenToTransferOutput specified as ${when} yet ShouldTransferFiles defined as ${should}.`,
    ['Please remove this contradiction from your submit file.'],
    'WhenToTransferOutput',
  );
}

function choosePlan(job: JobMaker, inputs: boolean, outputs: boolean): Plan {
  const shouldText =
    job.param('ShouldTransferFiles', 'should_transfer_files') ?? job.draft.string('ShouldTransferFiles');
  let should = shouldText === undefined ? 'IF_NEEDED' : SHOULD[shouldText.toLowerCase()];
  if (should === undefined) {
    throw job.fault(
      'should_transfer_files',
      `invalid value (${shouldText}) for ShouldTransferFiles.`,
      ['Specify YES, NO, or IF_NEEDED.'],
      'ShouldTransferFiles',
    );
  }
  if (should === 'NO' && (inputs || outputs)) {
    const names = [...(inputs ? ['"transfer_input_files"'] : []), ...(outputs ? ['"transfer_output_files"'] : [])];
    throw job.fault(
      'should_transfer_files',
      `you specified files you want Condor to transfer via ${names.join(' and ')}, but you disabled should_transfer_files.`,
    );
  }
  const whenText =
    job.param('WhenToTransferOutput', 'when_to_transfer_output') ?? job.draft.string('WhenToTransferOutput');
  let when = whenText === undefined ? 'ON_EXIT' : WHEN[whenText.toLowerCase()];
  if (when === undefined) {
    throw job.fault(
      'when_to_transfer_output',
      `invalid value (${whenText}) for WhenToTransferOutput.`,
      ['Specify ON_EXIT, ON_EXIT_OR_EVICT or ON_SUCCESS.'],
      'WhenToTransferOutput',
    );
  }
  if (whenText === undefined && shouldText !== undefined && should === 'NO') when = 'NEVER';
  if ((should === 'NO') !== (when === 'NEVER')) throw contradiction(job, should, whenText ?? when);
  if (when === 'ON_EXIT_OR_EVICT' && should === 'IF_NEEDED') {
    if (shouldText !== undefined) {
      throw job.fault(
        'when_to_transfer_output',
        '"when_to_transfer_output = ON_EXIT_OR_EVICT" and "should_transfer_files = IF_NEEDED" are incompatible.',
        ['Write should_transfer_files = YES, or when_to_transfer_output = ON_EXIT.'],
      );
    }
    should = 'YES';
  }
  return { should, when };
}

function addToolDaemon(job: JobMaker, inputs: Inputs): void {
  const command = job.draft.string('ToolDaemonCmd');
  if (command === undefined) return;
  for (const name of [command, job.draft.string('ToolDaemonInput')]) {
    if (name !== undefined && !inputs.names.includes(name)) {
      inputs.names.push(name);
      inputs.kb += job.sizeKb(name);
    }
  }
}

/** In the Java universe the class file and the jars are inputs, and the program is java. */
function addJava(job: JobMaker, inputs: Inputs): void {
  const command = job.draft.string('Cmd');
  const names = [command === 'java' ? undefined : command, ...tokens(job.draft.string('JarFiles') ?? '', ',')];
  for (const name of names) {
    if (name === undefined || inputs.names.includes(name)) continue;
    inputs.names.push(name);
    inputs.kb += job.sizeKb(name);
  }
  job.setString('Cmd', 'java');
  job.setBool('TransferExecutable', false);
}

function setSizes(job: JobMaker, inputs: Inputs): void {
  const written = job.param('disk_usage', 'DiskUsage');
  if (written !== undefined) {
    const size = sizeOf(written, 1024)?.value ?? 0;
    if (size < 1) {
      throw job.fault('disk_usage', `'${written}' is not valid for disk_usage. It must be >= 1`, [], 'DiskUsage');
    }
    return job.setInt('DiskUsage', size);
  }
  if (job.scope.late) return;
  const kb = (job.draft.number('ExecutableSize') ?? 0) + inputs.kb;
  job.setInt('TransferInputSizeMB', Math.floor((kb + 1023) / 1024));
  job.setInt('DiskUsage', kb);
}

function refuseExecutable(job: JobMaker): void {
  const { universe } = job.kind;
  if (universe === UNIVERSE.grid || universe === UNIVERSE.java || universe === UNIVERSE.vm) return;
  if (!(job.boolParam('transfer_executable', 'TransferExecutable') ?? false)) return;
  throw job.fault(
    'transfer_executable',
    'You explicitly requested that the executable be transfered, but should_transfer_files = NO forbids it.',
    ['Define should_transfer_files = IF_NEEDED, or leave transfer_executable out.'],
  );
}

/** Results must be in the job's directory: a name that leads out of it would bring home the site's own files. */
function refuseOutside(job: JobMaker, command: string, other: string, names: readonly string[]): void {
  const outside = names.find((name) => plainName(name) === undefined);
  if (outside === undefined) return;
  const how = outside.startsWith('/') ? 'is absolute' : "is outside the job's directory";
  throw job.fault(
    command,
    `${command} names '${outside}', which ${how}.`,
    ['Have the job copy it into its own directory, and use the name that it has there.'],
    other,
  );
}

function setRemaps(job: JobMaker): void {
  const written = job.param('transfer_output_remaps', 'TransferOutputRemaps');
  const remaps = written === undefined ? '' : stripQuotes(written);
  if (remaps !== '') job.setString('TransferOutputRemaps', remaps);
  const [wrong] = wrongRemaps(remaps);
  if (wrong === undefined) return;
  const text = `transfer_output_remaps has '${wrong}', which is not NAME = NEWNAME`;
  const remedy = 'Write for example transfer_output_remaps = "out.txt = results/out.txt ; log = run.log"';
  if (job.scope.policy.dryRun) job.warn(`${text}. A real submit is refused.`, 'transfer_output_remaps');
  else throw job.fault('transfer_output_remaps', text, [remedy], 'TransferOutputRemaps');
}

/** Files that go home while they grow need a directory of the job's own, and one program that writes them. */
function setStreamed(job: JobMaker, should: Should): void {
  const written = job.param('stream_results', 'StreamResults');
  const patterns = tokens(stripQuotes(written ?? ''), ',').filter((one) => one !== '');
  if (patterns.length === 0) return;
  const fault = (message: string, help: string) => job.fault('stream_results', message, [help], 'StreamResults');
  for (const pattern of patterns) {
    const wrong = patternFault(pattern);
    if (wrong !== undefined)
      throw fault(
        `stream_results names '${pattern}', which ${wrong}.`,
        "Name files in the job's own directory, such as *.out or logs/*.dat.",
      );
  }
  if (should === 'NO')
    throw fault(
      'stream_results and should_transfer_files = NO are incompatible.',
      'Write should_transfer_files = YES: only files in a directory of the job are followed.',
    );
  if (job.kind.universe === UNIVERSE.parallel)
    throw fault(
      'The nodes of a parallel job write files of the same names, which stream_results cannot tell apart.',
      'Remove stream_results: their files come at the end.',
    );
  job.setString('StreamResults', patterns.join(','));
}

/** Which files are transferred to the job and back, and when. */
export const transfer: Step = {
  name: 'should_transfer_files',
  run(job) {
    const inputs = collectInputs(job);
    const outputs = fileList(job, 'transfer_output_files', 'TransferOutputFiles');
    const { should, when } = choosePlan(job, inputs.given, outputs !== undefined);
    job.setString('ShouldTransferFiles', should);
    if (should !== 'NO') job.setString('WhenToTransferOutput', when);
    if (should !== 'YES' && !job.draft.has('FileSystemDomain')) {
      job.setString('FileSystemDomain', job.scope.machine.fileSystemDomain);
    }
    if (should !== 'NO') addToolDaemon(job, inputs);
    if (should !== 'NO' && job.kind.universe === UNIVERSE.java) addJava(job, inputs);
    setSizes(job, inputs);
    if (should === 'NO') refuseExecutable(job);
    else {
      // The real dry run leaves the class and the jars out of its ad.
      const java = job.kind.universe === UNIVERSE.java && !job.scope.policy.dryRun;
      if (inputs.given || java) job.setString('TransferInput', inputs.names.join(','));
      const shared = tokens(job.param('public_input_files', 'PublicInputFiles') ?? '', ',');
      for (const name of shared) checkShared(job, name, 'public_input_files', 'PublicInputFiles');
      if (shared.length > 0) job.setString('PublicInputFiles', shared.join(','));
      refuseOutside(job, 'transfer_output_files', 'TransferOutputFiles', outputs ?? []);
      if (outputs) job.setString('TransferOutput', outputs.join(','));
    }
    setRemaps(job);
    setStreamed(job, should);
  },
};
