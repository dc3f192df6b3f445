import { GryphusError } from '../errors.ts';
import type { Kind } from './kinds.ts';

/** How a site's machine is named: this one, or a host (or `~/.ssh/config` alias) to reach with ssh. */
export type SiteTarget =
  | { readonly kind: 'local' }
  | { readonly kind: 'ssh'; readonly host: string; readonly user?: string; readonly port?: number };

const SSH = /^(?:ssh:\/\/)?(?:([^@/\s]+)@)?(\[[0-9A-Fa-f:.%a-z]+\]|[^@/:\s]+)(?::(\d{1,5}))?\/?$/;

/** `local`, `ssh://[user@]host[:port]`, or the same without `ssh://` as ssh(1) takes it. A GryphusError 'bad-input' otherwise. */
export function parseSiteUrl(url: string): SiteTarget {
  if (url === 'local') return { kind: 'local' };
  const found = SSH.exec(url);
  const [, user, host, port] = found ?? [];
  if (!host || /^[a-z][a-z0-9+.-]*:\/\//i.test(url.replace(/^ssh:\/\//, '')))
    throw bad(url, 'is not a place that a site can be');
  if (host.startsWith('-') || user?.startsWith('-')) throw bad(url, 'has a name that begins with a dash');
  const number = port === undefined ? undefined : Number(port);
  if (number !== undefined && (number < 1 || number > 65_535)) throw bad(url, `has no possible port: ${number}`);
  return {
    kind: 'ssh',
    host: host.replace(/^\[(.*)\]$/, '$1'),
    ...(user === undefined ? {} : { user: decodeURIComponentOr(user) }),
    ...(number === undefined ? {} : { port: number }),
  };
}

export function formatSiteUrl(target: SiteTarget): string {
  if (target.kind === 'local') return 'local';
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
export const siteUrl: Kind<string> = {
  says: '"local", "ssh://user@host:port" or a Host of your ~/.ssh/config',
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
