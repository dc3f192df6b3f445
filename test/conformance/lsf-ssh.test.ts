import type { FakeBatch } from '../sites/fake-batch.ts';
import { arrayTests } from './arrays.ts';
import { batchFaults, unreachable } from './batch-faults.ts';
import { type BatchGround, sshLsf } from './batch-grounds.ts';
import { nodesTests } from './nodes.ts';
import { OF_ITS_COMMANDS, testSite } from './suite.ts';

const faults = batchFaults({
  submit: 'bsub',
  query: 'bjobs',
  remove: 'bkill',
  down: { message: 'Failed in an LSF library call: LIM is down; try later. Job not submitted.', status: 255 },
  held: ['-H'],
  noQueue: /No such queue/,
  clock: true,
  stuck: unreachable,
});
const arrays = arrayTests<BatchGround<FakeBatch>>({
  submit: 'bsub',
  isArray: "*'[1-'*",
  refuses: { message: 'Bad argument for option -J: job array size exceeds the limit. Job not submitted.', status: 255 },
  env: (ground) => ground.batch.env,
  remove: (ground, id) => ground.batch.run('bkill', id),
});
const several = (ground: () => BatchGround<FakeBatch>): void =>
  nodesTests({ listing: 'echo once', lines: ['once'], ground });
testSite({
  name: "LSF's commands over ssh",
  makeSite: sshLsf,
  ordinary: OF_ITS_COMMANDS,
  more: (ground) => [faults, arrays, several].forEach((tests) => tests(ground)),
});
