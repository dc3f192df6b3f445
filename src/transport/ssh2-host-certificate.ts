import type { Client } from 'ssh2';
import kex from 'ssh2/lib/protocol/kex.js';
import { parseCertificate, plainType } from '../util/ssh-certificate.ts';

/*
 * Adds OpenSSH host certificates to ssh2 1.17, which lacks them, from outside and for one connection, like the log-in
 * with certificates (ssh2-signer.ts).
 */

type Entry = { readonly array: readonly string[] };
export interface OfferLists {
  readonly kex: Entry;
  readonly serverHostKey: Entry;
  readonly cs: Readonly<Record<'cipher' | 'mac' | 'compress' | 'lang', Entry>>;
  readonly sc: OfferLists['cs'];
}
interface Internals {
  readonly _protocol: {
    _offer: { readonly lists: OfferLists };
    readonly _kex: { negotiated: { serverHostKey: string }; _hostKey: Buffer | undefined };
  };
}

/** RSA host certificates are left out: ssh2 ends the exchange before it asks for our verdict on them. */
const HOST_CERTIFICATES = ['ssh-ed25519', 'ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521'].map(
  (type) => `${type}-cert-v01@openssh.com`,
);

/** Asks the server for its host certificate in preference to its plain keys. Call right after `connect`. */
export function askForHostCertificate(client: Client): void {
  const protocol = (client as unknown as Internals)._protocol;
  const { lists } = protocol._offer;
  const names = (half: OfferLists['cs']): Record<string, readonly string[]> =>
    Object.fromEntries(Object.entries(half).map(([name, entry]) => [name, entry.array]));
  protocol._offer = new kex.KexInit({
    kex: lists.kex.array,
    serverHostKey: [...HOST_CERTIFICATES, ...lists.serverHostKey.array],
    cs: names(lists.cs),
    sc: names(lists.sc),
  });
}

/**
 * Call from the host verifier once a host certificate has been accepted: ssh2 then hashes the certificate into the
 * exchange and checks the host's signature with the key in the certificate.
 */
export function continueWithHostCertificate(client: Client, shown: Buffer): void {
  const certificate = parseCertificate(shown);
  if (certificate === undefined) return;
  const exchange = (client as unknown as Internals)._protocol._kex;
  exchange.negotiated.serverHostKey = plainType(certificate.type);
  let reads = 0;
  let replaced = false;
  let value: Buffer | undefined;
  Object.defineProperty(exchange, '_hostKey', {
    configurable: true,
    get: () => (replaced ? value : reads++ === 0 ? shown : certificate.publicKey),
    set: (next: Buffer | undefined) => {
      replaced = true;
      value = next;
    },
  });
}
