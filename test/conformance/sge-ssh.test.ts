import { skipWithoutSge } from '../sites/sge.ts';
import { sshSge } from './batch-grounds.ts';
import { testSite } from './suite.ts';

testSite({ name: 'Grid Engine over ssh', makeSite: sshSge, skip: skipWithoutSge() });
