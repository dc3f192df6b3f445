import type { Outcome } from './world.ts';

/** What the submitting machine's configuration says; HTCondor has each as a config parameter. */
export interface MachineFacts {
  /** $(ARCH), as in `X86_64`. */
  readonly arch: string;
  /** $(OPSYS), as in `LINUX`. */
  readonly opsys: string;
  readonly opsysVer: string;
  readonly opsysAndVer: string;
  readonly opsysMajorVer: string;
  /** $(SPOOL). */
  readonly spool: string;
  readonly uidDomain: string;
  readonly fileSystemDomain: string;
}

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

/** What a look into a proxy file tells. */
export interface ProxyFacts {
  readonly expiresAt: number;
  /** What the job's ad says of it. */
  readonly attributes?: Readonly<Record<string, string | number>>;
}

/** What this installation asks of a submit beyond HTCondor's rules. */
export interface SubmitPolicy {
  /** Take a `#!` script with DOS line ends, with a warning. */
  readonly allowCrlfScript: boolean;
  /** Refuse a job whose input files are not there. */
  readonly checkInputs: boolean;
  /** Jobs that a description may put into the queue at once. */
  readonly mostJobs: number;
  /** Only look at what would be submitted: attribute names that the queue would refuse are taken, as HTCondor's dry run does. */
  readonly dryRun: boolean;
  /** More words that grid_resource may begin with. */
  readonly gridTypes: readonly string[];
  /** Take a grid job without grid_resource: a broker will choose the site. */
  readonly broker: boolean;
  /** Looks into a proxy file; without it, the file only has to be readable. `expiresAt` is in Unix seconds. */
  readonly checkProxy: ((path: string) => Outcome<ProxyFacts>) | undefined;
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
