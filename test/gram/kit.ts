import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseGramContact } from '../../src/config/gram-resource.ts';
import { makeProxy, signDelegation } from '../../src/credentials/delegation.ts';
import { loadUser, saveProxy } from '../../src/credentials/store.ts';
import { openCaDirectory } from '../../src/credentials/x509/ca-directory.ts';
import type { ProxyOptions } from '../../src/credentials/x509/proxy-certificate.ts';
import type { Credential } from '../../src/credentials/x509/proxy-file.ts';
import { type GramSiteOptions, openGramSite } from '../../src/gram/site.ts';
import type { AuditableSite } from '../../src/site/audit.ts';
import { eventGenerator } from '../sites/event-generator.ts';
import { type Gatekeeper, type GatekeeperOptions, startGatekeeper } from '../sites/gatekeeper.ts';
import { type GridCa, makeGridCa, type Person } from '../sites/grid-ca.ts';

/** A minimal grid: a CA, a user with a proxy, a gatekeeper, and a directory for our files. */
export interface Grid {
  readonly ca: GridCa;
  readonly jane: Person;
  readonly gate: Gatekeeper;
  readonly dir: string;
  readonly proxy: Credential;
  /** The same in a file, for Debian's tools. */
  readonly proxyFile: string;
  /** Another GridManager's view of the service, with the state of `state`. */
  open(
    options?: Partial<GramSiteOptions> & { readonly state?: string; readonly credential?: Credential },
  ): Promise<AuditableSite>;
  stop(): Promise<void>;
}

export const seconds = (): number => Math.floor(Date.now() / 1000);

export async function proxyFor(person: Person, options: Partial<ProxyOptions> = {}): Promise<Credential> {
  return makeProxy(await loadUser(person.cert, person.key), { now: seconds(), lifetime: 12 * 3600, ...options });
}

/** If available, with the event generator: a job's end is known after one second instead of ten. */
export async function startGrid(options?: GatekeeperOptions): Promise<Grid> {
  const events = options === undefined ? eventGenerator() : undefined;
  const ca = makeGridCa();
  const jane = ca.person('Jane User');
  const gate = await startGatekeeper(ca, [jane], options ?? events?.gatekeeper);
  const dir = mkdtempSync(join(tmpdir(), 'gram-'));
  const proxy = await proxyFor(jane);
  const proxyFile = join(dir, 'proxy.pem');
  saveProxy(proxyFile, proxy);
  const opened: AuditableSite[] = [];
  return {
    ca,
    jane,
    gate,
    dir,
    proxy,
    proxyFile,
    async open({ state = 'state', credential = proxy, ...more } = {}) {
      const site = openGramSite({
        name: 'grid',
        target: parseGramContact(`${gate.address}/jobmanager-fork`),
        dir: join(dir, state),
        trust: () => openCaDirectory(ca.trust),
        env: {},
        ...more,
      });
      opened.push(site);
      await delegate(site, credential);
      return site;
    },
    async stop() {
      for (const site of opened) await site.close();
      await gate.stop();
      ca.stop();
      events?.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export function delegate(site: AuditableSite, issuer: Credential, name = 'jane'): Promise<void> {
  const now = seconds();
  const lifetime = issuer.chain[0].notAfter - now;
  return (
    site.delegate?.(name, async (request) => signDelegation(request, issuer, { now, lifetime })) ?? Promise.resolve()
  );
}
