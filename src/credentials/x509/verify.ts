import { type Certificate, type CertificateKind, kindOf } from './certificate.ts';
import { sameName } from './name.ts';
import { checkSignature } from './sign.ts';
import type { Trust } from './trust.ts';
import { checkAlone, checkPath, checkProxies, ChainRefusal, type Refused, type VerifyOptions } from './verify-rules.ts';

export type ChainVerdict =
  | {
      readonly ok: true;
      /** The subject of the end-entity certificate, which identifies the holder. */
      readonly identity: string;
      readonly limited: boolean;
      /** The earliest end in the chain, in Unix seconds. */
      readonly end: number;
      readonly anchor: Certificate;
    }
  | { readonly ok: false; readonly code: Refused; readonly message: string };

const LONGEST = 100;

/**
 * Whether a chain (leaf first, the others in any order) leads to a trusted authority under RFC 5280, RFC 3820 and
 * Globus' rules: signing policies are mandatory, limited proxies stay limited, and an existing CRL must be current. A
 * refusal is one sentence. Throws only what reading the trust's files throws.
 */
export function verifyChain(
  given: readonly [Certificate, ...Certificate[]],
  trust: Trust,
  options: VerifyOptions,
): ChainVerdict {
  try {
    const { proxies, path } = order(given, trust);
    const anchor = path.at(-1);
    if (anchor === undefined) throw new ChainRefusal('unknown-authority', 'The chain is empty.');
    for (const one of [...proxies, ...path]) checkAlone(one, options);
    const [user] = path;
    const limited = checkProxies(proxies, user ?? anchor);
    checkPath(path, trust, options);
    return {
      ok: true,
      identity: (user ?? anchor).subject.text,
      limited,
      end: Math.min(...[...proxies, ...path].map((one) => one.notAfter)),
      anchor,
    };
  } catch (thrown) {
    if (thrown instanceof ChainRefusal) return { ok: false, code: thrown.code, message: thrown.message };
    throw thrown;
  }
}

const PROXIES: readonly CertificateKind[] = ['proxy', 'limited-proxy', 'independent-proxy'];

/** Sorts the chain: proxies first, then from the user's certificate to the trust anchor. */
function order(
  given: readonly [Certificate, ...Certificate[]],
  trust: Trust,
): { proxies: Certificate[]; path: Certificate[] } {
  const proxies: Certificate[] = [];
  const path: Certificate[] = [];
  let at: Certificate = given[0];
  for (let i = 0; i < LONGEST; i++) {
    const kind = kindOf(at);
    if (kind === 'legacy-proxy') {
      throw new ChainRefusal(
        'not-a-proxy',
        `${at.subject.text} is a proxy from before RFC 3820, which sites no longer accept.`,
      );
    }
    const isProxy = PROXIES.includes(kind);
    (isProxy ? proxies : path).push(at);
    const below = at;
    if (!isProxy) {
      const known = trust.authorities(below.issuer).toSorted((a, b) => b.notAfter - a.notAfter);
      const anchor = known.find((one) => checkSignature(below, one.publicKey) === 'good') ?? known[0];
      if (sameName(below.subject, below.issuer)) {
        if (known.some((one) => Buffer.from(one.der).equals(below.der))) return { proxies, path };
        throw new ChainRefusal(
          'unknown-authority',
          `${below.subject.text} is self-signed, and is not in ${trust.where}.`,
        );
      }
      if (anchor !== undefined) {
        path.push(anchor);
        if (sameName(anchor.subject, anchor.issuer)) return { proxies, path };
        path.pop();
        at = anchor;
        continue;
      }
    }
    const issuer = given.find((one) => one !== below && sameName(one.subject, below.issuer));
    if (issuer === undefined) {
      const where = isProxy ? 'the chain lacks the certificate of' : `${trust.where} lacks the certificate authority`;
      throw new ChainRefusal(
        'unknown-authority',
        `${below.subject.text} cannot be traced: ${where} ${below.issuer.text}.`,
      );
    }
    at = issuer;
  }
  throw new ChainRefusal('unknown-authority', `The chain of ${given[0].subject.text} is longer than ${LONGEST}.`);
}
