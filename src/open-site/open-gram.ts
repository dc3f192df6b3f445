import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { loadCredentials } from '../config/credentials.ts';
import type { GramTarget } from '../config/gram-resource.ts';
import type { Paths } from '../config/paths.ts';
import type { SiteRecord } from '../config/sites.ts';
import { signDelegation } from '../credentials/delegation.ts';
import { defaultFiles, loadProxy } from '../credentials/store.ts';
import { openCaDirectory } from '../credentials/x509/ca-directory.ts';
import { openGramSite } from '../gram/site.ts';
import type { AuditableSite } from '../site/audit.ts';

export interface OpenGramOptions {
  readonly paths: Pick<Paths, 'configDir' | 'stateDir'>;
  readonly manager?: string;
  /** For a command: the manager whose jobs it looks at; by default, any manager's. */
  readonly identity?: string;
}

/**
 * Opens a GRAM service. A GridManager keeps state that the service does not keep in a directory named for its identity;
 * a command uses the same directory, with the user's current proxy.
 */
export async function openGram(
  record: SiteRecord,
  target: GramTarget,
  options: OpenGramOptions,
): Promise<AuditableSite> {
  const { paths, manager, identity } = options;
  const root = join(paths.stateDir, 'gram', encodeURIComponent(record.name));
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const there = readdirSync(root);
  const looked = there.find((name) => identity !== undefined && name === encodeURIComponent(identity));
  const visiting = manager === undefined;
  const site = openGramSite({
    name: record.name,
    target,
    dir: join(root, visiting ? (looked ?? there[0] ?? 'visitor') : encodeURIComponent(manager)),
    trust: () => openCaDirectory(defaultFiles().trust),
    visiting,
  });
  if (visiting) await lend(site, await proxyFileOf(record, paths));
  return site;
}

/** The proxy configured for the site, or the one at the default location of the grid's tools. */
async function proxyFileOf(record: SiteRecord, paths: Pick<Paths, 'configDir'>): Promise<string> {
  const { good } = await loadCredentials(paths);
  const found = record.credential === undefined ? undefined : good.get(record.credential);
  return found?.kind === 'x509-proxy' ? found.file : defaultFiles().proxy;
}

async function lend(site: AuditableSite, file: string): Promise<void> {
  const issuer = loadProxy(file);
  const now = Math.floor(Date.now() / 1000);
  const lifetime = Math.max(1, issuer.chain[0].notAfter - now);
  await site.delegate?.('visitor', async (request) => signDelegation(request, issuer, { now, lifetime }));
}
