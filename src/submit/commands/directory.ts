import type { Step } from '../maker.ts';
import { compressPath } from '../maker.ts';
import { absolutePath } from '../source.ts';

/** The directory of the job's files. */
export const initialDirectory: Step = {
  name: 'initialdir',
  run(job) {
    const name = job.param('initialdir', 'Iwd') ?? job.param('initial_dir', 'job_iwd');
    const path = compressPath(name === undefined ? job.scope.cwd : absolutePath(name, job.scope.cwd));
    if (name !== undefined && !job.scope.late && !job.world.look(path)?.directory) {
      throw job.fault('initialdir', `No such directory: ${path}`, ['Create it, or correct initialdir.'], 'Iwd');
    }
    job.iwd = path;
    job.setString('Iwd', path);
    if (job.scope.file !== undefined) job.setString('JobSubmitFile', job.scope.file);
  },
};
