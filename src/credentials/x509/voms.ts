import type { Certificate } from './certificate.ts';
import { children, context, type Der, expectTag, readDer, readOid, readOne, readText, readTime, TAG } from './der.ts';
import { OID } from './oids.ts';

/**
 * What a VOMS server certifies about the holder (an attribute certificate inside a proxy); times are in Unix seconds.
 */
export interface VomsAttributes {
  readonly vo: string;
  /** The `host:port` of the server. */
  readonly uri: string;
  /** `/vo/group/Role=…/Capability=…`; the first is the primary one. */
  readonly fqans: readonly string[];
  readonly notBefore: number;
  readonly notAfter: number;
}

/**
 * The VOMS attributes in a chain, from the nearest certificate that has any (as in voms-proxy-info). They are only
 * read, since the site verifies them. Unreadable ones are left out because the proxy works without them.
 */
export function vomsAttributes(chain: readonly Certificate[]): readonly VomsAttributes[] {
  for (const certificate of chain) {
    const found = certificate.extensions.find((one) => one.oid === OID.vomsAttributes);
    if (found !== undefined) return readAll(found.value);
  }
  return [];
}

function readAll(value: Uint8Array): readonly VomsAttributes[] {
  try {
    const outer = children(readOne(value, TAG.sequence));
    return outer.flatMap((list) => children(list).flatMap(readAttributeCertificate));
  } catch {
    return [];
  }
}

/** The validity and the attributes of an AttributeCertificateInfo (RFC 5755). */
function readAttributeCertificate(der: Der): readonly VomsAttributes[] {
  const [info] = children(der);
  const fields = children(expectTag(info, TAG.sequence));
  const validity = fields.findIndex(
    (one) => one.tag === TAG.sequence && one.content.length > 0 && readDer(one.content).tag === TAG.generalizedTime,
  );
  const [notBefore, notAfter] = children(expectTag(fields[validity], TAG.sequence));
  const attributes = children(expectTag(fields[validity + 1], TAG.sequence));
  return attributes.flatMap((attribute) => {
    const [type, values] = children(attribute);
    if (readOid(type) !== OID.vomsFqans) return [];
    return children(expectTag(values, TAG.set)).map((syntax) => {
      const parts = children(syntax);
      const authority = parts.find((one) => one.tag === context(0));
      const names = parts.find((one) => one.tag === TAG.sequence);
      const [vo = '', uri = ''] = (authority === undefined ? '' : uriOf(authority)).split('://');
      return {
        vo,
        uri,
        fqans: names === undefined ? [] : children(names).map(readText),
        notBefore: readTime(notBefore),
        notAfter: readTime(notAfter),
      };
    });
  });
}

/** policyAuthority: general names, one of them a URI ([6]); some writers add a level of nesting. */
function uriOf(authority: Der): string {
  const [first] = children(authority);
  if (first === undefined) return '';
  return first.tag === 0x86 ? readText({ ...first, tag: TAG.ia5String }) : uriOf(first);
}
