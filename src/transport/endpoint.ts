import { GryphusError } from '../errors.ts';

/** The destination of a transport as the user wrote it; `host` may be an alias from ~/.ssh/config. */
export type Endpoint = { readonly kind: 'local' } | SshEndpoint;

export interface SshEndpoint {
  readonly kind: 'ssh';
  readonly host: string;
  readonly user: string | undefined;
  readonly port: number | undefined;
}

/**
 * Parses `local`, `ssh://[user@]host[:port]`, `[user@]host` and `[user@][address]:port`. Anything else is 'bad-input'.
 */
export function parseEndpoint(text: string): Endpoint {
  if (text === 'local' || text === 'local://' || text === 'local:') return { kind: 'local' };
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(text)?.[1];
  if (scheme !== undefined && scheme.toLowerCase() !== 'ssh') {
    throw bad(text, `"${scheme}" is not a supported URL scheme`);
  }
  const rest = scheme === undefined ? text : text.slice(scheme.length + 3);
  const slash = rest.indexOf('/');
  if (slash !== -1 && slash !== rest.length - 1) throw bad(text, 'the URL of a site must not have a path');
  const authority = slash === -1 ? rest : rest.slice(0, slash);

  const at = authority.lastIndexOf('@');
  const user = at === -1 ? undefined : decodeUser(text, authority.slice(0, at));
  const { host, port } = splitHostPort(text, authority.slice(at + 1));
  if (host === '') throw bad(text, 'the host is missing');
  // The ssh program would take a word that begins with a dash for an option.
  if (!/^[^-\s\p{Cc}"'`$\\;&<>|(){}/@][^\s\p{Cc}"'`$\\;&<>|(){}/@]*$/u.test(host)) {
    throw bad(text, `"${host}" is not a host name`);
  }
  return { kind: 'ssh', host, user, port };
}

function decodeUser(text: string, encoded: string): string {
  if (encoded.includes(':'))
    throw bad(`…@${text.slice(text.lastIndexOf('@') + 1)}`, 'the URL of a site must not contain a password');
  let user: string;
  try {
    user = decodeURIComponent(encoded);
  } catch {
    throw bad(text, `"${encoded}" is not a user name`);
  }
  if (user === '' || user.startsWith('-') || /[\s\p{Cc}"'`$\\;&<>|(){}]/u.test(user)) {
    throw bad(text, `"${user}" is not a user name`);
  }
  return user;
}

function splitHostPort(text: string, message: string): { host: string; port: number | undefined } {
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/.exec(message);
  if (bracketed !== null) return { host: bracketed[1] ?? '', port: parsePort(text, bracketed[2]) };
  // A bare IPv6 address has several colons and no port.
  if (message.split(':').length > 2) return { host: message, port: undefined };
  const [host = '', port] = message.split(':');
  return { host, port: parsePort(text, port) };
}

function parsePort(text: string, digits: string | undefined): number | undefined {
  if (digits === undefined) return undefined;
  const port = Number(digits);
  if (!/^\d{1,5}$/.test(digits) || port < 1 || port > 65_535) throw bad(text, `"${digits}" is not a port`);
  return port;
}

function bad(text: string, why: string): GryphusError {
  return new GryphusError('bad-input', `Cannot read the site "${text}": ${why}.`, {
    suggestions: ['Write `local`, `ssh://user@host:port`, or the name of a Host in ~/.ssh/config.'],
  });
}
