import { skipWithoutSlurm } from '../sites/slurm.ts';
import { sshSlurm } from './grounds.ts';
import { slurmFaults } from './slurm-faults.ts';
import { testSite } from './suite.ts';

testSite({ name: 'slurm over ssh', makeSite: () => sshSlurm(), skip: skipWithoutSlurm(), more: slurmFaults });
