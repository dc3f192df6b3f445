import type { SiteCause } from './contract.ts';

interface Rule {
  /** HTCondor's HoldReasonCode for a job that its policy does not run again. */
  readonly hold: number;
  /** What happened: the start of a sentence that ends with the site's message. */
  readonly says: string;
  readonly remedy: string;
  /** Another attempt would end in the same way, so `max_retries` is ignored. */
  readonly inVain?: true;
}

/**
 * Reasons why a site ended a job. None ever counts as success, and none runs the program again unless the job's own
 * policy says so (`max_retries`, `on_exit_remove`, a release). Codes: HTCondor's manual, "Machine-readable hold codes".
 */
export const SITE_CAUSES: Readonly<Record<SiteCause, Rule>> = {
  timeout: { hold: 46, says: 'The site ended it at its time limit', remedy: 'Request more time (batch_runtime).' },
  'node-fail': { hold: 35, says: 'The node that ran it failed', remedy: 'Release it to run it again.' },
  preempted: { hold: 35, says: 'The site preempted it', remedy: 'Release it to run it again, or use another queue.' },
  requeued: {
    hold: 35,
    says: 'The site stopped it and put it back into its queue',
    remedy: 'Release it to run it again.',
  },
  unsatisfiable: {
    hold: 37,
    says: 'The site can never start it as requested',
    remedy: 'Change what it requests, and release it.',
    inVain: true,
  },
  'out-of-memory': { hold: 34, says: 'It used more memory than it requested', remedy: 'Raise request_memory.' },
  cancelled: {
    hold: 37,
    says: 'It was cancelled at the site, not by us',
    remedy: 'Ask the site why; release it to run it again.',
  },
  'boot-fail': { hold: 35, says: 'Its node could not be booted', remedy: 'Release it to run it again.' },
  deadline: { hold: 46, says: 'The site ended it at its deadline', remedy: 'Release it with another deadline.' },
  'cannot-start': {
    hold: 6,
    says: 'The program could not be started',
    remedy:
      'Check the executable and its interpreter at the site; `gryphus site test` says whether programs can be started in its scratch directory at all.',
  },
  'no-image': {
    hold: 35,
    says: 'Its container image could not be used',
    remedy: "Check the image's name, and that its registry can be reached from the worker.",
  },
  vanished: {
    hold: 35,
    says: 'It started and then vanished without an exit status',
    remedy: 'Release it to run it again.',
  },
};
