import { join } from 'node:path';
import { signDelegation } from '../../credentials/delegation.ts';
import { loadProxy, saveProxy } from '../../credentials/store.ts';
import { certificatePem } from '../../credentials/x509/pem.ts';
import { pair, readChain } from '../../credentials/x509/proxy-file.ts';
import { makeRequest } from '../../credentials/x509/request.ts';
import { makeKey } from '../../credentials/x509/sign.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { ensurePrivateDir } from '../../util/private-file.ts';

const WHAT = 'the delegated proxy';
/**
 * A worker's proxies are renewed while jobs use them, so that renewals at home reach the jobs: after half of each
 * proxy's remaining lifetime, but at most RENEW_MS and at least SOONEST_MS. Milliseconds.
 */
const RENEW_MS = 600_000;
const SOONEST_MS = 5_000;

/** Proxies delegated to us, each in a file, with its own key that was generated here and never leaves. */
export class Proxies {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  path(name: string): string {
    return join(this.#dir, `${name}.pem`);
  }

  /** Generates a key and a request, which `sign` answers (both PEM). Replaces the old proxy atomically. */
  async take(name: string, sign: (requestPem: string) => Promise<string | Buffer>): Promise<string> {
    ensurePrivateDir(this.#dir);
    const key = await makeKey('rsa');
    const request = certificatePem(makeRequest(key)).replaceAll(' CERTIFICATE-', ' CERTIFICATE REQUEST-');
    const chain = readChain(Buffer.from(await sign(request)), WHAT);
    saveProxy(this.path(name), pair(chain, key, WHAT));
    return this.path(name);
  }

  /** Signs a worker's request; its proxy expires when ours does. */
  sign(name: string, requestPem: string): string {
    const issuer = loadProxy(this.path(name));
    const now = Math.floor(Date.now() / 1000);
    return signDelegation(requestPem, issuer, { now, lifetime: Math.max(1, issuer.chain[0].notAfter - now) });
  }
}

/** The proxies of a worker elsewhere, delegated by the central manager when the first job needs one. */
export class WorkerProxies {
  readonly #proxies: Proxies;
  readonly #ask: (name: string, key: AttemptKey, requestPem: string) => Promise<Buffer>;
  readonly #there = new Map<string, Promise<string>>();
  /** When each proxy is due for renewal, by the monotonic clock. */
  readonly #due = new Map<string, number>();

  constructor(dir: string, ask: (name: string, key: AttemptKey, requestPem: string) => Promise<Buffer>) {
    this.#proxies = new Proxies(dir);
    this.#ask = ask;
  }

  /** The path of a proxy; `key`: an attempt that is entitled to it. */
  of(name: string, key: AttemptKey): Promise<string> {
    const known = this.#there.get(name);
    if (known) return known;
    const coming = this.#take(name, key);
    this.#there.set(name, coming);
    coming.catch(() => this.#there.delete(name));
    return coming;
  }

  /** Whether any proxy is due for renewal. */
  isDue(now = performance.now()): boolean {
    return [...this.#due.values()].some((due) => due <= now);
  }

  /** Renews the proxies of running attempts. While the central manager is away, they keep those they have. */
  async renew(used: ReadonlyMap<string, AttemptKey>, now = performance.now()): Promise<void> {
    for (const name of this.#there.keys()) if (!used.has(name)) this.#drop(name);
    const due = [...used].filter(([name]) => (this.#due.get(name) ?? 0) <= now);
    for (const [name] of due) this.#due.set(name, now + SOONEST_MS);
    for (const [name, key] of due) await this.#take(name, key).catch(() => undefined);
  }

  #drop(name: string): void {
    this.#there.delete(name);
    this.#due.delete(name);
  }

  async #take(name: string, key: AttemptKey): Promise<string> {
    const path = await this.#proxies.take(name, (request) => this.#ask(name, key, request));
    const left = loadProxy(path).chain[0].notAfter * 1000 - Date.now();
    this.#due.set(name, performance.now() + Math.min(RENEW_MS, Math.max(SOONEST_MS, left / 2)));
    return path;
  }
}
