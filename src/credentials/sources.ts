import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { asError, GryphusError } from '../errors.ts';
import { oneLine } from '../util/plain-text.ts';
import { readSecretFile, wipe } from '../util/secret-file.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { readCertificateLine } from '../util/ssh-certificate.ts';
import type { MyProxyAccount } from './myproxy-account.ts';
import { proxyInfo } from './proxy-info.ts';
import { loadProxy, readPublic } from './store.ts';
import type { Watched } from './watch/model.ts';

/** A credential as configured: where it is and how it is renewed. Times are in Unix seconds. */
export type Source = SourceBase &
  (
    | { readonly kind: 'x509-proxy'; readonly file: string }
    /** `id_x-cert.pub`; the key next to it has the same name without `-cert.pub`. */
    | { readonly kind: 'ssh-certificate'; readonly file: string }
    /** A key that a site accepts until a given time, or for `lifetime` seconds after the file was written. */
    | { readonly kind: 'ssh-key'; readonly file: string; readonly lifetime?: number; readonly until?: number }
    /** Something that ends but has no file. */
    | { readonly kind: 'allocation' | 'account'; readonly until: number }
  );

interface SourceBase {
  readonly name: string;
  readonly renewal?: Renewer;
}

export type Renewer =
  /** A command line from the user (`/bin/sh -c`). */
  | { readonly by: 'command'; readonly command: string; readonly timeoutMs: number }
  /** Proxies of `lifetime` seconds from a MyProxy server. */
  | { readonly by: 'myproxy'; readonly account: MyProxyAccount; readonly lifetime: number };

const WHAT: Readonly<Record<Source['kind'], string>> = {
  'x509-proxy': 'X.509 proxy',
  'ssh-certificate': 'SSH certificate',
  'ssh-key': 'SSH key',
  allocation: 'allocation',
  account: 'account',
};

/** The current state of the credential. Never throws: anything wrong becomes its `problem`. */
export function inspect(source: Source): Watched {
  const common = {
    name: source.name,
    what: WHAT[source.kind],
    renews: source.renewal !== undefined,
    holds: true,
    type: howToRenew(source),
  };
  try {
    return { ...common, ...facts(source) };
  } catch (thrown) {
    return { ...common, version: '', problem: oneLine(asError(thrown).message) };
  }
}

/** A credential whose description is missing or unreadable. */
export function undescribed(name: string, problem: string): Watched {
  return { name, what: 'credential', version: '', problem, renews: false, holds: true, type: ['gryphus cred list'] };
}

type Facts = Pick<Watched, 'version' | 'start' | 'end'>;

function facts(source: Source): Facts {
  switch (source.kind) {
    case 'x509-proxy': {
      const { chain } = loadProxy(source.file);
      const info = proxyInfo(chain);
      // Once its VOMS attributes have ended, sites that require them refuse the proxy.
      const end = Math.min(info.end, ...info.voms.map((one) => one.notAfter));
      return { version: digest(chain[0].der), start: chain[0].notBefore, end };
    }
    case 'ssh-certificate': {
      const line = readPublic(source.file, 'certificate').toString('utf8');
      const found = readCertificateLine(line);
      if (typeof found === 'string')
        throw new GryphusError('credential-invalid', `${source.file} is not an OpenSSH certificate: ${found}.`);
      const { validAfter, validBefore } = found;
      wipe(readSecretFile(source.file.replace(/-cert\.pub$/, ''), 'key'));
      const end = validBefore === undefined ? {} : { end: validBefore };
      return { version: digest(Buffer.from(line)), start: validAfter, ...end };
    }
    case 'ssh-key': {
      wipe(readSecretFile(source.file, 'key'));
      const { mtimeMs, size, ino } = statSync(source.file);
      const written = Math.floor(mtimeMs / 1000);
      const end = source.until ?? (source.lifetime === undefined ? undefined : written + source.lifetime);
      // Not a digest of the content: even that much of a key does not belong in a database.
      return {
        version: digest(Buffer.from(`${mtimeMs} ${size} ${ino}`)),
        start: written,
        ...(end === undefined ? {} : { end }),
      };
    }
    case 'allocation':
    case 'account':
      return { version: String(source.until), end: source.until };
  }
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 32);
}

function howToRenew(source: Source): readonly string[] {
  if (source.renewal !== undefined) return [`gryphus cred renew ${shellQuote(source.name)}`];
  switch (source.kind) {
    case 'x509-proxy':
      return [`gryphus cred proxy init --out ${shellQuote(source.file)}`];
    case 'ssh-certificate':
    case 'ssh-key':
      return [`(your site's tool that writes ${source.file})`, 'gryphus cred list'];
    case 'allocation':
    case 'account':
      return ['gryphus config edit   # once the site has extended it'];
  }
}
