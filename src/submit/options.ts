import * as z from 'zod';
import type { Read } from '../util/schema.ts';
import type { WorldResult } from './world.ts';

/** Facts about the submitting machine; in HTCondor each is a configuration parameter. */
export const MACHINE_FACTS = z.strictObject({
  /** $(ARCH), such as `X86_64`. */
  arch: z.string(),
  /** $(OPSYS), such as `LINUX`. */
  opsys: z.string(),
  opsysVer: z.string(),
  opsysAndVer: z.string(),
  opsysMajorVer: z.string(),
  /** $(SPOOL). */
  spool: z.string(),
  uidDomain: z.string(),
  fileSystemDomain: z.string(),
});
export type MachineFacts = Read<typeof MACHINE_FACTS>;

export const DEFAULT_MACHINE: MachineFacts = {
  arch: 'X86_64',
  opsys: 'LINUX',
  opsysVer: '1200',
  opsysAndVer: 'Debian12',
  opsysMajorVer: '12',
  spool: '/var/condor/spool',
  uidDomain: 'localhost',
  fileSystemDomain: 'localhost',
};

/** What a look into a proxy file reveals. */
export interface ProxyFacts {
  readonly expiresAt: number;
  /** The proxy's attributes in the job's ad. */
  readonly attributes?: Readonly<Record<string, string | number>>;
}

/** What this installation requires of a submit beyond HTCondor's rules. */
export interface SubmitPolicy {
  /** Accept a `#!` script with DOS line ends, with a warning. */
  readonly allowCrlfScript: boolean;
  /** Refuse a job whose input files are missing. */
  readonly checkInputs: boolean;
  /** How many jobs a description may put into the queue at once. */
  readonly mostJobs: number;
  /**
   * Only show what would be submitted: like HTCondor's dry run, accepts attribute names that the queue would refuse.
   */
  readonly dryRun: boolean;
  /** Further words with which grid_resource may begin. */
  readonly gridTypes: readonly string[];
  /** Accept a grid job without grid_resource, because a broker chooses the site. */
  readonly broker: boolean;
  /** Inspects a proxy file; without it, the file only has to be readable. `expiresAt` is in Unix seconds. */
  readonly checkProxy: ((path: string) => WorldResult<ProxyFacts>) | undefined;
}

export const DEFAULT_POLICY: SubmitPolicy = {
  allowCrlfScript: false,
  checkInputs: true,
  mostJobs: Number.POSITIVE_INFINITY,
  dryRun: false,
  gridTypes: [],
  broker: false,
  checkProxy: undefined,
};
