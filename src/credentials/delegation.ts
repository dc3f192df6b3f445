import { certificatePem, readPem } from './x509/pem.ts';
import { readCertificate } from './x509/certificate.ts';
import { issueProxy, type ProxyOptions } from './x509/proxy-certificate.ts';
import type { Credential } from './x509/proxy-file.ts';
import { readRequest } from './x509/request.ts';
import { makeKey, publicKeyDer, type KeyType } from './x509/sign.ts';

/** Issues a proxy from `issuer` for a fresh key of our own. */
export async function makeProxy(
  issuer: Credential,
  options: ProxyOptions & { readonly keyType?: KeyType; readonly rsaBits?: number },
): Promise<Credential> {
  const key = await makeKey(options.keyType, options.rsaBits);
  const proxy = issueProxy(issuer.chain[0], issuer.key, publicKeyDer(key), options);
  return { chain: [readCertificate(proxy), ...issuer.chain], key };
}

/**
 * Signs a request that the peer made for its own key, and returns only the proxy's DER (GSI and MyProxy want no chain
 * with it).
 */
export function signRequest(request: Uint8Array, issuer: Credential, options: ProxyOptions): Uint8Array {
  return issueProxy(issuer.chain[0], issuer.key, readRequest(request), options);
}

/**
 * Delegates without sending a key: the site made the key pair and this request (PEM, `delegate.sh`). The answer is what
 * follows the site's key in the proxy file: the new proxy and its issuers, as PEM. Error 'credential-invalid'.
 */
export function signDelegation(requestPem: string, issuer: Credential, options: ProxyOptions): string {
  const block = readPem(requestPem).find((one) => /^(NEW )?CERTIFICATE REQUEST$/.test(one.label));
  const proxy = signRequest(block?.der ?? new Uint8Array(), issuer, options);
  return [proxy, ...issuer.chain.filter((one) => !one.ca).map((one) => one.der)].map(certificatePem).join('');
}
