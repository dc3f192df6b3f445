import type { FakeBatch } from '../sites/fake-batch.ts';
import { arrayTests } from './arrays.ts';
import { batchFaults, unreachable } from './batch-faults.ts';
import { type BatchGround, sshPbs } from './batch-grounds.ts';
import { nodesTests } from './nodes.ts';
import { OF_ITS_COMMANDS, testSite } from './suite.ts';

const faults = batchFaults({
  submit: 'qsub',
  query: 'qstat',
  remove: 'qdel',
  down: {
    message: 'Connection refused\nqsub: cannot connect to server pbshead (errno=15010)',
    status: 162,
    queryStatus: 255,
  },
  held: ['-h'],
  noQueue: /Unknown queue.*Queues there: workq/,
  clock: true,
  stuck: unreachable,
});
const arrays = arrayTests<BatchGround<FakeBatch>>({
  submit: 'qsub',
  isArray: "*' -J 1-'*",
  refuses: { message: 'qsub: Array job exceeds server or queue size limit', status: 3 },
  env: (ground) => ground.batch.env,
  remove: (ground, id) => ground.batch.run('qdel', id),
});
const several = (ground: () => BatchGround<FakeBatch>): void =>
  nodesTests({ listing: 'echo once', lines: ['once'], ground });
testSite({
  name: 'OpenPBS commands over ssh',
  makeSite: sshPbs,
  ordinary: OF_ITS_COMMANDS,
  more: (ground) => [faults, arrays, several].forEach((tests) => tests(ground)),
});
