import { type Condor, skipWithoutCondor } from '../sites/condor.ts';
import { SLOW } from '../slow.ts';
import { arrayTests } from './arrays.ts';
import { batchFaults } from './batch-faults.ts';
import { type BatchGround, sshHtcondor } from './batch-grounds.ts';
import { htcondorFaults } from './htcondor-faults.ts';
import { CONDOR_ARRAYS, CONDOR_FAULTS } from './condor-words.ts';
import { testSite } from './suite.ts';

const faults = batchFaults({
  ...CONDOR_FAULTS,
});
const arrays = arrayTests<BatchGround<Condor>>({
  ...CONDOR_ARRAYS,
  env: (ground) => ground.batch.env,
  remove: (ground, id) => ground.batch.run('condor_rm', id),
});
const pool = {
  skip: skipWithoutCondor(),
  // condor-ssh.test.ts checks how the commands are called, with fakes that answer like these.
  ordinary: [
    'says what it is, and that it is well',
    'runs a job from its files to its results, once',
    'hands over arguments, variables and names with every legal byte',
    'hands over variables of every name and value',
  ],
};
testSite({
  ...pool,
  name: 'HTCondor over ssh',
  makeSite: () => sshHtcondor(),
  more: (ground) => (SLOW ? [htcondorFaults, faults, arrays] : [htcondorFaults]).forEach((tests) => tests(ground)),
});
if (SLOW && process.getuid?.() === 0) {
  testSite({
    ...pool,
    name: "HTCondor over ssh, whose daemons are root's",
    makeSite: () => sshHtcondor({ ofRoot: true }),
    more: htcondorFaults,
  });
}
