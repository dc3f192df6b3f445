import { type Attempt, jobOf } from './attempts.ts';
import type { RunningNow } from '../wire/client-wire.ts';
import type { CentralManager } from './central-manager.ts';
import type { CentralManagerWorkers } from './worker-connections.ts';
import type { RunUsage } from '../wire/wire.ts';

/** A worker that does not answer within this time is left out, in milliseconds. */
const PATIENCE_MS = 5000;

/** Everything that is running now, with its usage; each worker is asked once. */
export async function runningNow(
  centralManager: CentralManager,
  workers: Pick<CentralManagerWorkers, 'askingOf'>,
): Promise<RunningNow[]> {
  const byWorker = new Map<string, Attempt[]>();
  for (const attempt of centralManager.attempts()) {
    if (attempt.worker === undefined || (attempt.phase !== 'running' && attempt.phase !== 'suspended')) continue;
    byWorker.set(attempt.worker, [...(byWorker.get(attempt.worker) ?? []), attempt]);
  }
  const answers = [...byWorker].map(async ([instance, attempts]) => {
    const usage = new Map((await usageAt(workers, instance, attempts)).map((one) => [one.key, one]));
    return attempts.map((attempt) => shown(attempt, usage.get(attempt.key)));
  });
  return (await Promise.all(answers)).flat();
}

async function usageAt(
  workers: Pick<CentralManagerWorkers, 'askingOf'>,
  instance: string,
  attempts: readonly Attempt[],
): Promise<readonly RunUsage[]> {
  const asked = workers.askingOf(instance)?.ask({ what: 'usage', keys: attempts.map(({ key }) => key) });
  if (!asked) return [];
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), PATIENCE_MS);
  });
  const answer = await Promise.race([asked.catch(() => undefined), late]);
  clearTimeout(timer);
  return answer?.usage ?? [];
}

function shown({ key, phase, host, startedAt }: Attempt, usage: RunUsage | undefined): RunningNow {
  return {
    job: jobOf(key),
    is: phase === 'suspended' ? 'suspended' : 'running',
    ...(host === undefined ? {} : { host }),
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(usage && { usage }),
  };
}
