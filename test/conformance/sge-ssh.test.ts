import { skipWithoutSge } from '../sites/sge.ts';
import { batchFaults } from './batch-faults.ts';
import { sshSge } from './batch-grounds.ts';
import { testSite } from './suite.ts';

const more = batchFaults({
  submit: 'qsub',
  query: 'qstat',
  remove: 'qdel',
  down: {
    words:
      'error: commlib error: got select error (Connection refused)\nUnable to run job: unable to send message to qmaster using port 26844 on host "localhost": got send error\nExiting.',
    status: 1,
  },
  held: ['-h'],
  noQueue: /unknown queue/,
  clock: true,
});
testSite({ name: 'Grid Engine over ssh', makeSite: sshSge, skip: skipWithoutSge(), more });
