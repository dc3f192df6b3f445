import { loadCredential, loadCredentials, watchConfig } from '../config/credentials.ts';
import type { Paths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { loadSites } from '../config/sites.ts';
import { type CredentialStatus, credentialStatuses } from '../credentials/status.ts';
import { type Renewed, renew } from '../credentials/renew.ts';
import type { Source } from '../credentials/sources.ts';
import type { Watched, WatchedJob } from '../credentials/watch/model.ts';
import type { Queue } from '../queue/api.ts';
import { inspectAll, inventory } from '../credentials/inventory/inventory.ts';
import { siteStatuses } from './site-status.ts';

/** Every credential that is described or used by jobs, with its time left, its jobs and its sites. */
export async function currentCredentialStatuses(queue: Queue, paths: Paths): Promise<readonly CredentialStatus[]> {
  const found = await inventory(queue, paths);
  const logins = await loginsOf(queue, paths);
  const now = Math.floor(Date.now() / 1000);
  const config = watchConfig(await loadSettings(paths));
  const watched = [...inspectAll(found), ...logins.map((one) => one.watched)];
  return credentialStatuses(watched, [...found.jobs, ...logins.flatMap((one) => one.jobs)], now, config);
}

/** Renews a credential in its own way and tells the Scheduler; `name`: as in `cred list`. */
export async function renewCredential(queue: Queue, paths: Paths, name: string): Promise<Renewed> {
  const source = await sourceNamed(queue, paths, name);
  const end = await renew(source);
  if (end.ok)
    await queue.notice({ about: 'credential-renewed', message: `'${name}' was renewed.`, info: { by: 'user' } });
  return end;
}

async function sourceNamed(queue: Queue, paths: Paths, name: string): Promise<Source> {
  const { good, bad } = await loadCredentials(paths);
  const described = good.get(name);
  if (described) return described;
  const used = bad.has(name) ? undefined : (await inventory(queue, paths)).sources.get(name);
  // Throws what is wrong with the file, or that there is none.
  return used ?? (await loadCredential(paths, name));
}

/** Log-ins with a code typed by a person: they last as long as the connection. */
async function loginsOf(
  queue: Queue,
  paths: Paths,
): Promise<readonly { readonly watched: Watched; readonly jobs: readonly WatchedJob[] }[]> {
  const sites = await siteStatuses(queue, await loadSites(paths));
  const wanting = sites.filter((site) => site.connection === 'needs-login');
  return wanting.map((site) => {
    const name = `${site.name} log-in`;
    const count = (jobs: number, where: WatchedJob['where']): WatchedJob[] =>
      Array.from({ length: jobs }, () => ({ id: { cluster: 0, proc: 0 }, site: site.name, needs: [name], where }));
    return {
      watched: {
        name,
        what: 'log-in',
        version: '',
        problem: site.message ?? 'The connection was lost.',
        renews: false,
        holds: false,
        type: [`gryphus site login ${site.name}`],
      },
      jobs: [...count(site.idle, 'waiting'), ...count(site.queuedThere + site.running, 'there')],
    };
  });
}
