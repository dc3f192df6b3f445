import { type Sge, skipWithoutSge } from '../sites/sge.ts';
import { arrayTests } from './arrays.ts';
import { batchFaults } from './batch-faults.ts';
import { type BatchGround, sshSge } from './batch-grounds.ts';
import { testSite } from './suite.ts';

const faults = batchFaults({
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
const arrays = arrayTests<BatchGround<Sge>>({
  submit: 'qsub',
  isArray: "*' -t '*",
  refuses: { words: 'Unable to run job: array jobs are not allowed here.\nExiting.', status: 1 },
  env: (ground) => ground.batch.env,
  remove: (ground, id) => ground.batch.run('qdel', id),
});
testSite({
  name: 'Grid Engine over ssh',
  makeSite: sshSge,
  skip: skipWithoutSge(),
  more: (ground) => [faults, arrays].forEach((tests) => tests(ground)),
});
