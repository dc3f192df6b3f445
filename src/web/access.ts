import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { ensurePrivateDir, writeWhole } from '../util/private-file.ts';

/** How long an address that was printed can be opened, and how long a browser stays known; milliseconds. */
const TICKET_MS = 10 * 60_000;
const SESSION_MS = 30 * 24 * 3600_000;

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
 *
 * All of it is good only while this process runs. When it has ended, another user can listen at its port, and gets what
 * open pages and programs send there; the next server must not accept it.
 */
export class Access {
  /** Another for each agent, because the servers of two, at two ports of 127.0.0.1, share the browser's cookies. */
  readonly cookieName: string;
  readonly #secret = randomBytes(32);
  /** For programs: `Authorization: Bearer`, from the file `token` in `dir`. */
  readonly #token = randomBytes(32).toString('hex');
  readonly #tickets = new Map<string, number>();

  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
    const agent = createHash('sha256').update(`${hostname()}:${dir}`).digest('hex');
    this.cookieName = `gryphus-${agent.slice(0, 12)}`;
  }

  /** Writes the token for programs into its file. */
  publish(): void {
    ensurePrivateDir(this.#dir);
    writeWhole(join(this.#dir, 'token'), `${this.#token}\n`);
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

  /** Whether the key belongs to one of the cookies of this header, and they are still good. */
  knows(header: string | undefined, key: string | undefined, now = Date.now()): boolean {
    // Another port's server can add cookies of the same name, before or behind ours.
    return cookiesOf(header, this.cookieName).some((cookie) => this.#fits(cookie, key, now));
  }

  #fits(cookie: string, key: string | undefined, now: number): boolean {
    const [, until = '', nonce = '', mark = ''] = /^(\d+)\.([\w-]+)\.([\w-]+)$/.exec(cookie) ?? [];
    if (key === undefined || Number(until) < now) return false;
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

function cookiesOf(header: string | undefined, wanted: string): string[] {
  return (header ?? '').split(';').flatMap((part) => {
    const [name, value] = part.trim().split('=', 2);
    return name === wanted && value !== undefined ? [value] : [];
  });
}

function same(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
