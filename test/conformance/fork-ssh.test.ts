import { sshFork } from './grounds.ts';
import { testSite } from './suite.ts';

testSite({ name: 'fork over ssh', makeSite: () => sshFork() });
