import type { FakeBatch } from '../sites/fake-batch.ts';
import { arrayTests } from './arrays.ts';
import { batchFaults, unreachable } from './batch-faults.ts';
import { type BatchGround, sshCondor } from './batch-grounds.ts';
import { CONDOR_ARRAYS, CONDOR_FAULTS } from './condor-words.ts';
import { OF_ITS_COMMANDS, testSite } from './suite.ts';

const faults = batchFaults({
  ...CONDOR_FAULTS,
  stuck: unreachable,
});
const arrays = arrayTests<BatchGround<FakeBatch>>({
  ...CONDOR_ARRAYS,
  env: (ground) => ground.batch.env,
  remove: (ground, id) => ground.batch.run('condor_rm', id),
});
testSite({
  name: 'HTCondor commands over ssh',
  makeSite: sshCondor,
  ordinary: OF_ITS_COMMANDS,
  more: (ground) => [faults, arrays].forEach((tests) => tests(ground)),
});
