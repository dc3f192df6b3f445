import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import type { FakeBatch } from '../sites/fake-batch.ts';
import { SLOW } from '../slow.ts';
import { arrayTests } from './arrays.ts';
import { batchFaults } from './batch-faults.ts';
import { type BatchGround, sshTorqueItself } from './batch-grounds.ts';
import { testSite } from './suite.ts';

const faults = batchFaults({
  submit: 'qsub',
  query: 'qstat',
  remove: 'qdel',
  down: {
    message:
      "Unable to communicate with tqhead(10.77.0.1)\nCannot connect to specified server host 'tqhead'.\nqsub: cannot connect to server tqhead (errno=111) Connection refused",
    status: 111,
  },
  held: ['-h'],
  noQueue: /Unknown queue.*Queues there: batch/,
  clock: true,
});
const arrays = arrayTests<BatchGround<FakeBatch>>({
  submit: 'qsub',
  isArray: "*' -t 1-'*",
  refuses: {
    message:
      'qsub: submit error (Queue does not allow job arrays MSG=job arrays are not allowed for queue: queue batch)',
    status: 1,
  },
  env: (ground) => ground.batch.env,
  remove: (ground, id) => ground.batch.run('qdel', id),
});
// Slurm's commands in Torque's style have no arrays; everything else of Torque's they cover in an ordinary run.
testSite({
  name: 'Torque 6.1 commands over ssh',
  makeSite: sshTorqueItself,
  skip: !SLOW,
  more: (ground) => [faults, arrays].forEach((tests) => tests(ground)),
});
describe.skipIf(SLOW)('Torque 6.1 arrays over ssh', () => {
  let ground: BatchGround<FakeBatch>;
  beforeAll(async () => {
    ground = await sshTorqueItself();
  });
  afterEach(async () => await ground.closeSites());
  afterAll(async () => await ground?.close());
  arrays(() => ground);
});
