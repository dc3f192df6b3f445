import { readExtension, readSigned, type Signed } from './certificate.ts';
import { children, context, expectTag, readInteger, readOne, readTime, TAG } from './der.ts';
import { type Name, readName } from './name.ts';

/** A certificate revocation list (RFC 5280, 5); times are in Unix seconds. */
export interface RevocationList extends Signed {
  readonly issuer: Name;
  readonly thisUpdate: number;
  readonly nextUpdate: number | undefined;
  readonly revoked: ReadonlySet<bigint>;
  /** Its critical extensions, none of which is supported here: deltas and partial lists. */
  readonly critical: readonly string[];
}

export function readCrl(der: Uint8Array): RevocationList {
  const signed = readSigned(der);
  const fields = [...children(readOne(signed.body, TAG.sequence))];
  if (fields[0]?.tag === TAG.integer) fields.shift();
  const [, issuer, thisUpdate, ...rest] = fields;
  const isTime = rest[0]?.tag === TAG.utcTime || rest[0]?.tag === TAG.generalizedTime;
  const next = isTime ? rest.shift() : undefined;
  const list = rest[0]?.tag === TAG.sequence ? children(rest[0]) : [];
  const wrapped = rest.find((one) => one.tag === context(0));
  const extensions =
    wrapped === undefined ? [] : children(expectTag(children(wrapped)[0], TAG.sequence)).map(readExtension);
  return {
    ...signed,
    issuer: readName(issuer),
    thisUpdate: readTime(thisUpdate),
    nextUpdate: next === undefined ? undefined : readTime(next),
    revoked: new Set(list.map((one) => readInteger(children(expectTag(one, TAG.sequence))[0]))),
    critical: extensions.filter((one) => one.critical).map((one) => one.oid),
  };
}
