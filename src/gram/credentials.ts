import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { certificatePem } from '../credentials/x509/pem.ts';
import { type Credential, pair, readChain } from '../credentials/x509/proxy-file.ts';
import { makeRequest } from '../credentials/x509/request.ts';
import { makeKey } from '../credentials/x509/sign.ts';
import { loadProxy, saveProxy } from '../credentials/store.ts';
import { GryphusError } from '../errors.ts';
import { ensurePrivateDir } from '../util/private-file.ts';

/** The proxies delegated to us for a GRAM service, each with a key of its own that is made and kept here. */
export class GramCredentials {
  readonly #dir: string;
  readonly #known = new Map<string, Credential>();

  constructor(dir: string) {
    this.#dir = dir;
    ensurePrivateDir(dir);
    const names = readdirSync(dir).flatMap((file) => /^(.+)\.pem$/.exec(file)?.[1] ?? []);
    for (const name of names) this.#known.set(name, loadProxy(this.#path(name)));
  }

  /** Stores a fresh proxy under this name. */
  async take(name: string, sign: (requestPem: string) => Promise<string>): Promise<Credential> {
    const key = await makeKey('rsa');
    const request = certificatePem(makeRequest(key)).replaceAll(' CERTIFICATE-', ' CERTIFICATE REQUEST-');
    const chain = readChain(Buffer.from(await sign(request)), 'the delegated proxy');
    const credential = pair(chain, key, 'the delegated proxy');
    saveProxy(this.#path(name), credential);
    this.#known.set(name, credential);
    return credential;
  }

  /** The credential of an attempt; throws 'credential-invalid' if there is none. */
  get(name: string): Credential {
    const found = this.#known.get(name) ?? this.newest();
    if (found !== undefined) return found;
    throw new GryphusError('credential-invalid', 'A GRAM service needs an X.509 proxy, but the job names none.', {
      suggestions: [
        'gryphus cred proxy init, and x509userproxy = FILE in the description,',
        "or a credential of the kind x509-proxy in the site's file.",
      ],
    });
  }

  /** When the proxy of this name expires, in Unix seconds; 0 if there is none. */
  endOf(name: string): number {
    return this.#known.get(name)?.chain[0].notAfter ?? 0;
  }

  /** The one with the longest remaining life. */
  newest(): Credential | undefined {
    return this.newestName === undefined ? undefined : this.#known.get(this.newestName);
  }

  get newestName(): string | undefined {
    return [...this.#known].toSorted(([, a], [, b]) => b.chain[0].notAfter - a.chain[0].notAfter)[0]?.[0];
  }

  #path(name: string): string {
    return join(this.#dir, `${name}.pem`);
  }
}
