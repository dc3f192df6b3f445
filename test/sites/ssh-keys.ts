import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Creates a key pair with ssh-keygen; returns the path of the private key (`<path>.pub` is beside it). */
export function makeKey(
  dir: string,
  name: string,
  options: { type?: 'ed25519' | 'rsa' | 'ecdsa'; passphrase?: string } = {},
): string {
  const file = join(dir, name);
  const size = options.type === 'rsa' ? ['-b', '2048'] : [];
  execFileSync(
    'ssh-keygen',
    ['-q', '-t', options.type ?? 'ed25519', ...size, '-N', options.passphrase ?? '', '-C', name, '-f', file],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  return file;
}

export interface CertificateRequest {
  readonly ca: string;
  /** Private key whose `.pub` is signed; the certificate is `<key>-cert.pub`. */
  readonly key: string;
  readonly principals: readonly string[];
  /** As ssh-keygen's `-V`, for example `-5m:+2m`. */
  readonly validity?: string;
  readonly host?: boolean;
  /** ssh-keygen's `-O` options. */
  readonly options?: readonly string[];
}

/** Signs a key with ssh-keygen; returns the certificate's path. */
export function signKey(request: CertificateRequest): string {
  const who = ['-q', '-s', request.ca, '-I', 'test', '-n', request.principals.join(',')];
  const when = ['-V', request.validity ?? '-5m:+1d'];
  const kind = request.host ? ['-h'] : [];
  const limits = (request.options ?? []).flatMap((option) => ['-O', option]);
  execFileSync('ssh-keygen', [...who, ...when, ...kind, ...limits, `${request.key}.pub`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return `${request.key}-cert.pub`;
}

/** The first two words (type, base64) of a public key file. */
export function publicKeyOf(privateKeyFile: string): string {
  return readFileSync(`${privateKeyFile}.pub`, 'utf8').split(' ').slice(0, 2).join(' ');
}
