import { SLOW } from '../slow.ts';
import { sshGryphus } from './batch-grounds.ts';
import { testSite } from './suite.ts';

// Every question starts a process of the other command line; an ordinary run has test/agent/to-gryphus-ssh.test.ts
// instead.
testSite({ name: 'another Gryphus over ssh', makeSite: sshGryphus, skip: !SLOW });
