import { batchFaults } from './batch-faults.ts';
import { sshCondor } from './batch-grounds.ts';
import { testSite } from './suite.ts';

const more = batchFaults({
  submit: 'condor_submit',
  query: 'condor_q',
  remove: 'condor_rm',
  down: { words: "\nERROR: Can't find address of local schedd", status: 1 },
  held: ['-append', 'hold = True'],
  clock: true,
});
testSite({ name: 'HTCondor commands over ssh', makeSite: sshCondor, more });
