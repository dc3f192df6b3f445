import { GryphusError } from '../errors.ts';
import { formatGramContact, type GramTarget, parseGramContact } from './gram-resource.ts';
import type { KeyKind } from './kinds.ts';

/** How a site is reached: on this machine, by ssh to a host (or `~/.ssh/config` alias), or as a GRAM service. */
export type SiteTarget =
  | { readonly kind: 'local' }
  | { readonly kind: 'ssh'; readonly host: string; readonly user?: string; readonly port?: number }
  | GramTarget;

const SSH = /^(?:ssh:\/\/)?(?:([^@/\s]+)@)?(\[[0-9A-Fa-f:.%a-z]+\]|[^@/:\s]+)(?::(\d{1,5}))?\/?$/;

/**
 * `local`, `ssh://[user@]host[:port]`, the same without `ssh://` as in ssh(1), or `gt2://` and a GRAM contact;
 * otherwise a GryphusError 'bad-input'.
 */
export function parseSiteUrl(url: string): SiteTarget {
  if (url === 'local') return { kind: 'local' };
  if (url.startsWith('gt2://')) return parseGramContact(url.slice('gt2://'.length));
  const secret = passwordIn(url);
  if (secret !== undefined) throw new GryphusError('bad-input', `${secret}.`, { suggestions: NO_PASSWORD });
  const found = SSH.exec(url);
  const [, user, host, port] = found ?? [];
  if (!host || /^[a-z][a-z0-9+.-]*:\/\//i.test(url.replace(/^ssh:\/\//, '')))
    throw bad(url, 'is not a valid URL of a site');
  if (host.startsWith('-') || user?.startsWith('-')) throw bad(url, 'has a name that begins with a dash');
  const number = port === undefined ? undefined : Number(port);
  if (number !== undefined && (number < 1 || number > 65_535)) throw bad(url, `has an invalid port: ${number}`);
  return {
    kind: 'ssh',
    host: host.replace(/^\[(.*)\]$/, '$1'),
    ...(user === undefined ? {} : { user: decodeURIComponentOr(user) }),
    ...(number === undefined ? {} : { port: number }),
  };
}

/** The message about a URL with a password, which must not be shown. */
function passwordIn(url: string): string | undefined {
  const [, scheme = '', user = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/)?([^/\s]*)@(.*)$/is.exec(url) ?? [];
  const name = decodeURIComponentOr(user).split(':')[0] ?? '';
  if (name === decodeURIComponentOr(user)) return undefined;
  return `A URL of a site has no password: write ${scheme}${encodeURIComponent(name)}@${rest}`;
}

const NO_PASSWORD = ['Log in by a key, or type the password when it is asked for: gryphus site login NAME'];

export function formatSiteUrl(target: SiteTarget): string {
  if (target.kind === 'local') return 'local';
  if (target.kind === 'gram') return `gt2://${formatGramContact(target)}`;
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  return `ssh://${target.user === undefined ? '' : `${encodeURIComponent(target.user)}@`}${host}${target.port === undefined ? '' : `:${target.port}`}`;
}

function decodeURIComponentOr(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function bad(url: string, what: string): GryphusError {
  return new GryphusError('bad-input', `'${url}' ${what}.`, {
    suggestions: ['Write ssh://user@host:port, a Host of your ~/.ssh/config, or local.'],
  });
}

/** The `url` of a site's file. */
export const siteUrl: KeyKind<string> = {
  says: '"local", "ssh://user@host:port" or a Host of your ~/.ssh/config',
  hides: (raw) => (typeof raw === 'string' ? passwordIn(raw) : undefined),
  read: (raw) => {
    if (typeof raw !== 'string') return undefined;
    try {
      parseSiteUrl(raw);
      return raw;
    } catch {
      return undefined;
    }
  },
};
