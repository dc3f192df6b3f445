import { generateKeyPairSync } from 'node:crypto';
import ssh2, { type Client, type ParsedKey } from 'ssh2';
import utils from 'ssh2/lib/protocol/utils.js';
import { keyType } from './public-key.ts';
import { plainType } from '../util/ssh-certificate.ts';
import { wireString } from '../util/ssh-wire.ts';

/*
 * Public key log-ins with ssh2 1.17 for which we make the signature: with an OpenSSH certificate, which ssh2 does not
 * support; with an agent, whose certificates it drops; and with a key whose passphrase is only asked for once the
 * server has said that it accepts the key. Patched from outside, for one connection, relying on ssh2's internals: the
 * package pins its exact version, and the tests check this against a real sshd.
 */

/** A public key or certificate, and what signs for it; the result is an SSH signature blob (algorithm, signature). */
export interface Signer {
  readonly blob: Buffer;
  sign(data: Buffer): Promise<Buffer>;
}

const SIGNER = Symbol('signer');

interface SignerKey {
  readonly [SIGNER]?: Signer;
}

let lender: ParsedKey | undefined;

/** A key for ssh2's `publickey` method that it takes for a private one. */
export function signerKey(signer: Signer): ParsedKey {
  lender ??= lentKey();
  return Object.create(lender, {
    type: { value: algorithmOf(signer.blob) },
    getPublicSSH: { value: () => signer.blob },
    [SIGNER]: { value: signer },
  }) as ParsedKey;
}

/**
 * ssh2 recognizes keys by their class, which any private key provides. It is not made with ssh2 because ssh2 cannot
 * read 1 in 256 of those.
 */
export function lentKey(): ParsedKey {
  const { privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'prime256v1',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
  });
  const key = ssh2.utils.parseKey(privateKey);
  if (key instanceof Error) throw key;
  return key;
}

/** The algorithm named in the request is the certificate's, while the signature in it names the plain one. */
function algorithmOf(blob: Buffer): string {
  const type = keyType(blob);
  if (plainType(type) !== 'ssh-rsa') return type;
  return type === 'ssh-rsa' ? 'rsa-sha2-512' : 'rsa-sha2-512-cert-v01@openssh.com';
}

/** Signs with a private key parsed by ssh2; returns an SSH signature blob. */
export function signWith(key: ParsedKey, data: Buffer): Buffer {
  const sign = (hash?: string): Buffer => {
    const signature = key.sign(data, hash);
    if (signature instanceof Error) throw signature;
    return signature;
  };
  if (key.type === 'ssh-rsa') return Buffer.concat([wireString('rsa-sha2-512'), wireString(sign('sha512'))]);
  if (!key.type.startsWith('ecdsa-')) return Buffer.concat([wireString(key.type), wireString(sign())]);
  return Buffer.concat([wireString(key.type), wireString(ecdsaNumbers(sign()))]);
}

/** DER SEQUENCE(r, s) as the two mpints of RFC 5656, section 3.1.2. */
function ecdsaNumbers(der: Buffer): Buffer {
  let at = (der[1] ?? 0) & 0x80 ? 2 + ((der[1] ?? 0) & 0x7f) : 2;
  const numbers: Buffer[] = [];
  for (let index = 0; index < 2; index++) {
    const length = der[at + 1] ?? 0;
    numbers.push(wireString(der.subarray(at + 2, at + 2 + length)));
    at += 2 + length;
  }
  return Buffer.concat(numbers);
}

interface Protocol {
  authPK: (username: string, key: SignerKey, ...rest: unknown[]) => void;
  readonly _kex: { readonly sessionID: Buffer };
  readonly _authsQueue: string[];
  readonly _packetRW: {
    readonly write: { readonly allocStart: number; alloc(size: number): Buffer; finalize(packet: Buffer): Buffer };
  };
}

const USERAUTH_REQUEST = 50;

/** Lets `signerKey`s log in on a client. Call right after its `connect`. `onError`: signing failed. */
export function useSigners(client: Client, onError: (error: Error) => void): void {
  const protocol = (client as unknown as { _protocol: Protocol })._protocol;
  const authPK: Protocol['authPK'] = protocol.authPK.bind(protocol);
  protocol.authPK = (username, key, ...rest) => {
    const signer = key[SIGNER];
    if (signer === undefined) return authPK(username, key, ...rest);
    const signs = rest.some((argument) => typeof argument === 'function');
    const body = Buffer.concat([
      Buffer.from([USERAUTH_REQUEST]),
      ...[username, 'ssh-connection', 'publickey'].map((field) => wireString(field)),
      Buffer.from([signs ? 1 : 0]),
      wireString(algorithmOf(signer.blob)),
      wireString(signer.blob),
    ]);
    const send = (payload: Buffer): void => {
      const { write } = protocol._packetRW;
      const packet = write.alloc(payload.length);
      packet.set(payload, write.allocStart);
      protocol._authsQueue.push('publickey');
      utils.sendPacket(protocol, write.finalize(packet));
    };
    if (!signs) return send(body);
    signer
      .sign(Buffer.concat([wireString(protocol._kex.sessionID), body]))
      .then((signature) => send(Buffer.concat([body, wireString(signature)])))
      .catch(onError);
  };
}
