import { type Condor, skipWithoutCondor } from '../sites/condor.ts';
import { SLOW } from '../slow.ts';
import { arrayTests } from './arrays.ts';
import { batchFaults } from './batch-faults.ts';
import { type BatchGround, sshHtcondor } from './batch-grounds.ts';
import { htcondorFaults } from './htcondor-faults.ts';
import { testSite } from './suite.ts';

const faults = batchFaults({
  submit: 'condor_submit',
  query: 'condor_q',
  remove: 'condor_rm',
  down: { words: "\nERROR: Can't find address of local schedd", status: 1 },
  removeDown:
    "SECMAN:2011:Connection closed during command authorization.\nCouldn't find/remove all jobs matching constraint (x)",
  held: ['-append', 'hold = True'],
  clock: true,
});
const arrays = arrayTests<BatchGround<Condor>>({
  submit: 'condor_submit',
  isArray: '*GryphusOf*',
  refuses: { words: 'ERROR: a queue statement with items is not allowed here', status: 1 },
  env: (ground) => ground.batch.env,
  remove: (ground, id) => ground.batch.run('condor_rm', id),
});
const pool = {
  skip: skipWithoutCondor(),
  // What the commands themselves are asked for, condor-ssh.test.ts asks of those that answer as these.
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
