import type { FakeBatch } from '../sites/fake-batch.ts';
import { arrayTests } from './arrays.ts';
import { batchFaults, unreachable } from './batch-faults.ts';
import { type BatchGround, sshCondor } from './batch-grounds.ts';
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
  stuck: unreachable,
});
const arrays = arrayTests<BatchGround<FakeBatch>>({
  submit: 'condor_submit',
  isArray: '*GryphusOf*',
  refuses: { words: 'ERROR: a queue statement with items is not allowed here', status: 1 },
  env: (ground) => ground.batch.env,
  remove: (ground, id) => ground.batch.run('condor_rm', id),
});
testSite({
  name: 'HTCondor commands over ssh',
  makeSite: sshCondor,
  more: (ground) => [faults, arrays].forEach((tests) => tests(ground)),
});
