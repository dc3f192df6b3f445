import { localFork } from './grounds.ts';
import { testSite } from './suite.ts';

testSite({ name: 'fork on this machine', makeSite: () => localFork() });
