import type { Backend, QueueEntry } from './contract.ts';

/** Plain processes on the site's front machine, a bounded number at a time (fork.sh, fork-worker.sh, fork-start.sh). */
export const fork: Backend = {
  name: 'fork',
  shell: ['fork.sh', 'fork-worker.sh', 'fork-start.sh'],
  patience: { lookEvery: 5000, lookAgain: 500, lost: 3000, lag: 2000, verdict: 0, closing: 0 },
  arrays: false,
  oneHost: true,
  // A wrapper has a session of its own: only who tells all processes reaches it.
  told: { by: 'node-fail', message: 'all processes there were told to end, as at a shutdown or a log-out' },
  accounts: false,
  submitWords: () => [],
  idOf: (answer) => (/^\d+$/.test(answer) ? answer : undefined),
  beside: (_, commandLine) => commandLine,
  refusalOf: (_, message) => ({ kind: 'later', code: 'disk-full', message: `The site could not queue it: ${message}` }),
  queueEntry,
  capacityOf: (line) => {
    const [, slots, busy] = /^(\d+) (\d+)$/.exec(line) ?? [];
    return slots === undefined ? undefined : { cpus: Number(slots), freeCpus: Number(slots) - Number(busy) };
  },
};

function queueEntry(state: string): QueueEntry {
  switch (state) {
    case 'PENDING':
      return { is: 'waiting', message: 'all slots are taken' };
    case 'RUNNING':
      return { is: 'running' };
    case 'VANISHED':
      return { is: 'ended', by: 'vanished', message: 'its process is gone and left no exit status' };
    case 'NODE_FAIL':
      return { is: 'ended', by: 'node-fail', message: 'the machine was rebooted while it ran' };
    default:
      return { is: 'unclear', message: state };
  }
}
