import { signRequest } from '../delegation.ts';
import { readCertificate } from '../x509/certificate.ts';
import type { ProxyOptions } from '../x509/proxy-certificate.ts';
import { type Credential, pair } from '../x509/proxy-file.ts';
import { makeRequest } from '../x509/request.ts';
import { makeKey } from '../x509/sign.ts';
import type { Wire } from './wire.ts';

/** The giver's side, after its flag 'D': receives the peer's request and returns only the proxy. */
export async function giveProxy(wire: Wire, issuer: Credential, options: ProxyOptions): Promise<void> {
  await wire.send(signRequest(await wire.der(), issuer, options));
}

/**
 * The taker's side, after the flag 'D': makes a key and receives a proxy for it, issued from the chain of the
 * handshake.
 */
export async function takeProxy(wire: Wire, giver: Credential['chain']): Promise<Credential> {
  const key = await makeKey('rsa');
  await wire.send(makeRequest(key));
  return pair([readCertificate(await wire.der()), ...giver], key, 'the delegation');
}
