import type { FromClient } from '../wire/client-wire.ts';
import type { CentralManager } from './central-manager.ts';
import type { CentralManagerWorkers } from './worker-connections.ts';

/** Has the worker of a partner's ended job connect to the partner's gateway, or end that connection. Rejects if it cannot. */
export async function askDirect(
  centralManager: Pick<CentralManager, 'get' | 'collector'>,
  workers: Pick<CentralManagerWorkers, 'askingOf'>,
  client: string,
  { key, to }: Extract<FromClient, { t: 'direct' }>,
): Promise<void> {
  const attempt = centralManager.get(key);
  const ad = attempt?.request.ad ?? {};
  if (attempt?.client !== client || attempt.phase !== 'ended' || ad['FlockFrom'] === undefined)
    throw new Error('it is no ended job of a partner');
  const { worker = '' } = attempt;
  if (centralManager.collector.get(worker)?.texts['HasDirectResults'] !== 'true')
    throw new Error('its worker is of an earlier version');
  const asking = workers.askingOf(worker);
  if (!asking) throw new Error('its worker is not connected');
  await asking.ask({ what: 'direct', key, ...(to && { to }) });
}
