import type { Source } from '../credentials/sources.ts';
import { defaultFiles } from '../credentials/store.ts';
import { readNumber, readString, type TextSource } from '../job/values.ts';
import type { Credentials } from './credentials.ts';
import type { SiteRecord } from './sites.ts';

/** Which credentials must be valid for a job to start at its site. */
export interface Needs {
  /** Names of all credentials, including those without a readable description, which `sources` leaves out. */
  readonly names: readonly string[];
  readonly sources: readonly Source[];
  /** The X.509 proxy that goes to the site with the job. */
  readonly proxy: (Source & { readonly kind: 'x509-proxy' }) | undefined;
}

/** From the job's `x509userproxy`, its site's `credential`, and the end of our allocation there. */
export function needsOf(attrs: TextSource, site: SiteRecord | undefined, { good }: Credentials): Needs {
  const sources: Source[] = [];
  const names: string[] = [];
  const file = readString(attrs, 'x509userproxy');
  if (file !== undefined && file !== '') sources.push(proxyAt(file, attrs, good));
  if (site?.credential !== undefined) {
    const named = good.get(site.credential);
    if (named === undefined) names.push(site.credential);
    else if (!sources.some((one) => one.name === named.name)) sources.push(named);
  }
  const allocation = site && allocationOf(site);
  if (allocation) sources.push(allocation);
  const proxy = sources.find((one) => one.kind === 'x509-proxy');
  return { names: [...sources.map((one) => one.name), ...names], sources, proxy };
}

/** A site's allocation, which ends on a certain day, as a credential. */
export function allocationOf({ name, allocationEnd }: SiteRecord): Source | undefined {
  return allocationEnd === undefined
    ? undefined
    : { name: `${name} allocation`, kind: 'allocation', until: allocationEnd };
}

/** The private keys of a site's credential for logging in there; `undefined`: those of the ssh configuration. */
export function identityFilesOf(site: SiteRecord, { good }: Credentials): readonly string[] | undefined {
  const found = site.credential === undefined ? undefined : good.get(site.credential);
  if (found?.kind === 'ssh-key') return [found.file];
  if (found?.kind === 'ssh-certificate') return [found.file.replace(/-cert\.pub$/, '')];
  return undefined;
}

/** A proxy with a description keeps its name; any other is named by its path. */
function proxyAt(file: string, attrs: TextSource, good: Credentials['good']): Source {
  for (const one of good.values()) if (one.kind === 'x509-proxy' && one.file === file) return one;
  const renewal = renewalOf(attrs);
  return { name: file, kind: 'x509-proxy', file, ...(renewal === undefined ? {} : { renewal }) };
}

const HALF_DAY_MIN = 720;

/** HTCondor's MyProxyHost (`host:port`) and its companions; the lifetime is in minutes (manual, condor_submit). */
function renewalOf(attrs: TextSource): Source['renewal'] {
  const [, host, port] = /^(.+?)(?::(\d{1,5}))?$/.exec(readString(attrs, 'MyProxyHost') ?? '') ?? [];
  if (host === undefined) return undefined;
  const serverDn = readString(attrs, 'MyProxyServerDN');
  const credentialName = readString(attrs, 'MyProxyCredentialName');
  return {
    by: 'myproxy',
    account: {
      host,
      ...(port === undefined ? {} : { port: Number(port) }),
      user: readString(attrs, 'Owner') ?? '',
      ...(serverDn === undefined ? {} : { serverDn }),
      ...(credentialName === undefined ? {} : { credentialName }),
      trust: defaultFiles().trust,
    },
    lifetime: (readNumber(attrs, 'MyProxyNewProxyLifetime') ?? HALF_DAY_MIN) * 60,
  };
}
