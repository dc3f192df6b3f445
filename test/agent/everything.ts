import type { TestAgent } from './agent.ts';
import { until } from './agent.ts';
import { processes } from './kill.ts';

/** Our own programs, but not what runs at a site, which goes on. */
const DAEMON = /\/dist\/|redis-server|valkey-server|gryphus-waiter|worker\.mjs/;

export const daemons = (of: TestAgent) => processes(of).filter(({ what }) => DAEMON.test(what));

/**
 * Starts every kind of process that outlives its command, with a job of `words` in the pool, one at a site, and one as a
 * DAG's node. The first two clusters.
 */
export async function startEverything(agent: TestAgent, words: string): Promise<readonly [number, number]> {
  const job = `${words}\ntransfer_executable = false\nrequest_memory = 20M\nqueue\n`;
  await agent.ok('web', '--port', '0');
  const pool = await agent.submit(`universe = vanilla\n${job}`);
  const site = await agent.submit(`universe = grid\ngrid_resource = batch fork local\n${job}`);
  agent.file('node.sub', `universe = grid\ngrid_resource = batch fork local\n${job}`);
  agent.file('my.dag', 'JOB A node.sub\n');
  await agent.ok('dag', 'submit', 'my.dag');
  await agent.ok('wait', '--until', 'start', '--timeout', '60', String(pool), String(site));
  await until('all daemons', () => {
    const all = daemons(agent).map(({ what }) => what);
    const kinds = [/scheduler\/main/, /gridmanager\/main/, /central-manager-main/, /worker\.mjs/, /dag-manager/];
    return [...kinds, /web-server/, /(redis|valkey)-server/].every((kind) => all.some((what) => kind.test(what)));
  });
  return [pool, site];
}
