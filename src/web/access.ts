import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensurePrivateDir, writeWhole } from '../util/private-file.ts';

/** How long an address that was printed can be opened, and how long a browser stays known; milliseconds. */
const TICKET_MS = 10 * 60_000;
const SESSION_MS = 30 * 24 * 3600_000;

export const COOKIE = 'gryphus';
/** The header with the page's key, which scripts of other origins cannot read, nor send without a preflight. */
export const KEY_HEADER = 'x-gryphus-key';

/** What a browser is given for a ticket: a cookie, and a key for the page's storage. */
export interface Session {
  readonly cookie: string;
  readonly key: string;
}

/**
 * Who may use the page. A browser proves itself by two things: the cookie, which no script can read, and the key, which
 * no other origin can read. The cookie alone would not do: browsers send it to every port of 127.0.0.1, so another
 * user's server on this machine could collect it.
 */
export class Access {
  /** For programs: `Authorization: Bearer`, from the file `tokenFile`. */
  readonly tokenFile: string;
  readonly #secret: Buffer;
  readonly #token: string;
  readonly #tickets = new Map<string, number>();

  constructor(dir: string) {
    ensurePrivateDir(dir);
    this.tokenFile = join(dir, 'token');
    this.#secret = Buffer.from(kept(join(dir, 'secret')), 'hex');
    this.#token = kept(this.tokenFile);
  }

  /** A word that opens the page once. */
  ticket(now = Date.now()): string {
    for (const [ticket, until] of this.#tickets) if (until < now) this.#tickets.delete(ticket);
    const ticket = randomBytes(24).toString('base64url');
    this.#tickets.set(ticket, now + TICKET_MS);
    return ticket;
  }

  /** A session for a ticket that was not used before; `undefined` for any other word. */
  redeem(ticket: string, now = Date.now()): Session | undefined {
    const until = this.#tickets.get(ticket);
    this.#tickets.delete(ticket);
    if (until === undefined || until < now) return undefined;
    const open = `${now + SESSION_MS}.${randomBytes(12).toString('base64url')}`;
    const cookie = `${open}.${this.#sign('cookie', open)}`;
    return { cookie, key: this.#sign('key', cookie) };
  }

  /** Whether this cookie and this key belong together and are still good. They survive a restart of the server. */
  knows(cookie: string | undefined, key: string | undefined, now = Date.now()): boolean {
    const [, until = '', nonce = '', mark = ''] = /^(\d+)\.([\w-]+)\.([\w-]+)$/.exec(cookie ?? '') ?? [];
    if (cookie === undefined || key === undefined || Number(until) < now) return false;
    return same(mark, this.#sign('cookie', `${until}.${nonce}`)) && same(key, this.#sign('key', cookie));
  }

  /** Whether a program has shown the token. */
  bears(authorization: string | undefined): boolean {
    return authorization?.startsWith('Bearer ') === true && same(authorization.slice(7).trim(), this.#token);
  }

  #sign(what: string, text: string): string {
    return createHmac('sha256', this.#secret).update(`${what}\n${text}`).digest('base64url');
  }
}

/** The names under which this machine may be asked for; any other comes from a rebound DNS name. */
const HOST = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/;

/** Whether the request was meant for us: `Host` is this machine, and no other origin's page has sent it. */
export function isOwnOrigin(headers: {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
  readonly 'sec-fetch-site'?: string | string[] | undefined;
}): boolean {
  const { host = '', origin, 'sec-fetch-site': site } = headers;
  if (!HOST.test(host)) return false;
  if (origin !== undefined && origin !== `http://${host}`) return false;
  return site === undefined || site === 'same-origin' || site === 'none';
}

export function isOwnHost(host: string | undefined): boolean {
  return HOST.test(host ?? '');
}

export function cookieOf(header: string | undefined): string | undefined {
  for (const part of (header ?? '').split(';')) {
    const [name, value] = part.trim().split('=', 2);
    if (name === COOKIE) return value;
  }
  return undefined;
}

function kept(file: string): string {
  try {
    const text = readFileSync(file, 'utf8').trim();
    if (/^[0-9a-f]{64}$/.test(text)) return text;
  } catch {
    // It is made now.
  }
  const made = randomBytes(32).toString('hex');
  writeWhole(file, `${made}\n`);
  return made;
}

function same(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
