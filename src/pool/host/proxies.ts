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
 * A worker's proxies are made anew while jobs use them, since what was renewed at home reaches them so: after half of what
 * each has left, but at most and at least so often. Milliseconds.
 */
const RENEW_MS = 600_000;
const SOONEST_MS = 5_000;

/** Proxies that were delegated to us, each a file with a key of its own that was made here and stays here. */
export class Proxies {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  path(name: string): string {
    return join(this.#dir, `${name}.pem`);
  }

  /** Makes a key and a request, `sign` answers it (both PEM); in place whole, over the old one. */
  async take(name: string, sign: (requestPem: string) => Promise<string | Buffer>): Promise<string> {
    ensurePrivateDir(this.#dir);
    const key = await makeKey('rsa');
    const request = certificatePem(makeRequest(key)).replaceAll(' CERTIFICATE-', ' CERTIFICATE REQUEST-');
    const chain = readChain(Buffer.from(await sign(request)), WHAT);
    saveProxy(this.path(name), pair(chain, key, WHAT));
    return this.path(name);
  }

  /** Signs the request of a worker: its proxy lives as long as ours. */
  sign(name: string, requestPem: string): string {
    const issuer = loadProxy(this.path(name));
    const now = Math.floor(Date.now() / 1000);
    return signDelegation(requestPem, issuer, { now, lifetime: Math.max(1, issuer.chain[0].notAfter - now) });
  }
}

/** The proxies at a worker of elsewhere, delegated by the central manager when the first job wants one. */
export class WorkerProxies {
  readonly #proxies: Proxies;
  readonly #ask: (name: string, key: AttemptKey, requestPem: string) => Promise<Buffer>;
  readonly #there = new Map<string, Promise<string>>();
  /** By the monotonic clock. */
  readonly #due = new Map<string, number>();

  constructor(dir: string, ask: (name: string, key: AttemptKey, requestPem: string) => Promise<Buffer>) {
    this.#proxies = new Proxies(dir);
    this.#ask = ask;
  }

  /** Its file; `key`: the attempt that has a right to it. */
  of(name: string, key: AttemptKey): Promise<string> {
    const known = this.#there.get(name);
    if (known) return known;
    const coming = this.#take(name, key);
    this.#there.set(name, coming);
    coming.catch(() => this.#there.delete(name));
    return coming;
  }

  /** Something is to be made anew. */
  isDue(now = performance.now()): boolean {
    return [...this.#due.values()].some((due) => due <= now);
  }

  /** Of attempts that run; one whose central manager is away keeps what it has. */
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
