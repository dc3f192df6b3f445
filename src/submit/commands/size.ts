import { sizeOf } from '../calculate.ts';
import type { Step } from '../maker.ts';
import { isPseudoExecutable } from './executable.ts';
import { UNIVERSE } from '../../job/universe.ts';

/** The size of the program in KB: measured for a cluster's first job, or as the user says. */
export const imageSize: Step = {
  name: 'image_size',
  run(job) {
    if (job.kind.universe !== UNIVERSE.vm && job.first) {
      const command = job.draft.string('Cmd') ?? '';
      job.setInt('ExecutableSize', command === '' || isPseudoExecutable(job) ? 0 : job.sizeKb(command));
    }
    const written = job.param('image_size', 'ImageSize');
    if (written === undefined) {
      if (!job.draft.has('ImageSize')) job.setInt('ImageSize', job.draft.number('ExecutableSize') ?? 0);
      return;
    }
    const size = sizeOf(written, 1024);
    if (!size) throw job.fault('image_size', `'${written}' is not valid for Image Size`);
    if (size.value < 1) throw job.fault('image_size', 'Image Size must be positive');
    job.setInt('ImageSize', size.value);
  },
};
