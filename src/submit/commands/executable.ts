import type { JobMaker, Step } from '../maker.ts';
import { compressPath } from '../maker.ts';
import { absolutePath } from '../source.ts';
import { stripQuotes } from '../text.ts';
import { fileChecks } from './streams.ts';
import { UNIVERSE } from '../../job/universe.ts';

/** Whether the executable is only a name for what a cloud or a virtual machine runs. */
export function isPseudoExecutable(job: JobMaker): boolean {
  if (job.kind.universe === UNIVERSE.vm) return true;
  return job.kind.universe === UNIVERSE.grid && ['ec2', 'gce', 'azure'].includes(job.gridType);
}

export type ImageType = 'docker' | 'sif' | 'sandbox';

export function imageType(image: string): ImageType {
  if (image.startsWith('docker:')) return 'docker';
  return image.endsWith('.sif') ? 'sif' : 'sandbox';
}

const WANTS: Readonly<Record<ImageType, string>> = {
  docker: 'WantDockerImage',
  sif: 'WantSIF',
  sandbox: 'WantSandboxImage',
};

function setDockerImage(job: JobMaker, context: string): boolean {
  const written = job.param('docker_image', 'DockerImage');
  if (written === undefined) return false;
  const image = stripQuotes(written);
  if (image === '') throw job.fault('docker_image', `'${written}' is not a valid docker_image${context}`);
  job.setString('DockerImage', image);
  return true;
}

function setImages(job: JobMaker): void {
  if (job.kind.docker && !setDockerImage(job, '') && !job.draft.has('DockerImage')) {
    throw job.fault('universe', 'docker jobs require a docker_image');
  }
  if (!job.kind.container) return;
  setDockerImage(job, ' for container universe');
  const written = job.param('container_image', 'ContainerImage');
  if (written !== undefined) {
    const image = stripQuotes(written);
    if (image === '' || /^(instance|library|shub):\/\//.test(image)) {
      throw job.fault('container_image', `'${written}' is not a valid container image`);
    }
    job.setString('ContainerImage', image);
    job.setBool(WANTS[imageType(image)], true);
  } else if (!job.draft.has('ContainerImage') && !job.draft.has('DockerImage')) {
    throw job.fault('universe', 'container jobs require a container_image or docker_image');
  }
}

function refuseExecutable(job: JobMaker, text: string, suggestions: readonly string[]): void {
  if (fileChecks(job) === 'warn') job.warn(text, 'executable');
  else throw job.fault('executable', text, suggestions, 'Cmd');
}

/** Refuses an executable that is missing, empty, or a script with DOS line ends (the kernel would look for `sh\r`). */
function checkExecutable(job: JobMaker, name: string): void {
  if (name.includes('$$')) return;
  const path = absolutePath(name, job.scope.cwd);
  const facts = job.world.look(path);
  if (!facts) {
    return refuseExecutable(job, `Can't access executable file ${name}: No such file or directory`, [
      'Give its path from the directory that you submit in, or set transfer_executable = false for a program at the site.',
    ]);
  }
  if (facts.directory) return;
  if (!facts.readable) return refuseExecutable(job, `Can't access executable file ${name}: Permission denied`, []);
  if (facts.bytes === 0) return refuseExecutable(job, `Executable file ${name} has zero length`, []);
  const head = job.world.head(path, 127);
  if (!head.startsWith('#!') || !/^[^\n]{2,}\r\n/.test(head)) return;
  const text = `Executable file ${name} is a script with CRLF (DOS/Windows) line endings.`;
  if (job.scope.policy.allowCrlfScript) return job.warn(text, 'executable');
  refuseExecutable(job, text, [`Run 'dos2unix ${name}' before you resubmit.`]);
}

export const executable: Step = {
  name: 'executable',
  run(job) {
    fileChecks(job);
    setImages(job);
    if (job.param('shell') !== undefined) {
      job.setString('Cmd', '/bin/sh');
      job.setBool('TransferExecutable', false);
      return;
    }
    const name = job.param('executable', 'Cmd');
    if (name === undefined && job.draft.has('Cmd')) return;
    const image = job.kind.docker || job.kind.container;
    if (name === undefined && !image) {
      throw job.fault('executable', "No 'executable' parameter was provided", ["Add a line 'executable = PROGRAM'."]);
    }
    const written = job.param('transfer_executable', 'TransferExecutable');
    const transfers = !/^f/i.test(written ?? '') && !isPseudoExecutable(job) && name !== undefined;
    if (!transfers) job.setBool('TransferExecutable', false);
    job.setString('Cmd', transfers ? compressPath(absolutePath(name, job.scope.cwd)) : (name ?? ''));
    if (transfers && !job.scope.late) checkExecutable(job, name);
  },
};
