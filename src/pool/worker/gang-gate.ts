import type { FromWorker } from '../wire/wire.ts';
import type { Run } from './run.ts';

/** Whether a run is a node of a parallel job whose other nodes are not known to be ready; it says that it is. */
export function waitsForOthers(run: Run, say: (message: FromWorker) => void): boolean {
  if (run.received?.start.waits !== true || run.told) return false;
  run.ready = true;
  say({ t: 'ready', key: run.key, claim: run.record.claim });
  return true;
}

/** Whether it waits for the others and has been given up in the meantime: by its lease, or because its worker ends. */
export function givenUp({ phase, ready, aborted }: Run): boolean {
  return phase === 'staging' && ready && aborted;
}
