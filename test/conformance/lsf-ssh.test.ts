import { batchFaults } from './batch-faults.ts';
import { sshLsf } from './batch-grounds.ts';
import { testSite } from './suite.ts';

const more = batchFaults({
  submit: 'bsub',
  query: 'bjobs',
  remove: 'bkill',
  down: { words: 'Failed in an LSF library call: LIM is down; try later. Job not submitted.', status: 255 },
  held: ['-H'],
  noQueue: /No such queue/,
  clock: true,
});
testSite({ name: "LSF's commands over ssh", makeSite: sshLsf, more });
