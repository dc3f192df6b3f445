import { batchFaults } from './batch-faults.ts';
import { sshPbs } from './batch-grounds.ts';
import { testSite } from './suite.ts';

const more = batchFaults({
  submit: 'qsub',
  query: 'qstat',
  remove: 'qdel',
  down: {
    words: 'Connection refused\nqsub: cannot connect to server pbshead (errno=15010)',
    status: 162,
    queryStatus: 255,
  },
  held: ['-h'],
  noQueue: /Unknown queue/,
  clock: true,
});
testSite({ name: 'OpenPBS commands over ssh', makeSite: sshPbs, more });
