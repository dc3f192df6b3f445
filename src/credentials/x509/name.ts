import { createHash } from 'node:crypto';
import { children, type Der, expectTag, readOid, readOne, readText, TAG } from './der.ts';
import { oid, sequence, setOf, text, tlv } from './der-write.ts';
import { NAME_WORD, OID } from './oids.ts';

/** A distinguished name, as DER and in readable form. */
export interface Name {
  readonly der: Uint8Array;
  /** `/O=Grid/CN=Jane User`, the form in which the grid's tools print and compare it. */
  readonly text: string;
}

export function readName(der: Der | undefined): Name {
  const name = expectTag(der, TAG.sequence);
  const parts = attributesOf(name).map(([type, value]) => `/${NAME_WORD[type] ?? type}=${readText(value)}`);
  return { der: name.raw, text: parts.join('') };
}

function attributesOf(name: Der): readonly (readonly [string, Der])[] {
  return children(name).flatMap((rdn) =>
    children(expectTag(rdn, TAG.set)).map((pair) => {
      const [type, value] = children(expectTag(pair, TAG.sequence));
      if (value === undefined) throw new RangeError('A name has an attribute without a value.');
      return [readOid(type), value] as const;
    }),
  );
}

/** `name` with an additional common name: the subject of a proxy issued by `name` (RFC 3820, 3.4). */
export function withCommonName(name: Uint8Array, commonName: string): Uint8Array {
  const added = setOf(sequence(oid(OID.commonName), text(TAG.printableString, commonName)));
  return sequence(readOne(name, TAG.sequence).content, added);
}

/** The common name that `name` has in addition to `issuer`, if that is their only difference. */
export function addedCommonName(name: Uint8Array, issuer: Uint8Array): string | undefined {
  const [mine, theirs] = [children(readOne(name)), children(readOne(issuer))];
  const last = mine.at(-1);
  if (last === undefined || mine.length !== theirs.length + 1) return undefined;
  if (!theirs.every((rdn, i) => Buffer.from(rdn.raw).equals(mine[i]?.raw ?? Buffer.alloc(0)))) return undefined;
  const [pair, ...more] = children(last);
  if (pair === undefined || more.length > 0) return undefined;
  const [type, value] = children(pair);
  return value !== undefined && readOid(type) === OID.commonName ? readText(value) : undefined;
}

/** Names are equal if their values are, whatever string types encode them. */
export function sameName(a: Name, b: Name): boolean {
  return Buffer.from(a.der).equals(b.der) || Buffer.from(canonical(a.der)).equals(canonical(b.der));
}

/** The hash in a CA directory's file names: `openssl x509 -subject_hash`. */
export function nameHash(name: Uint8Array): string {
  return littleEndianHex(createHash('sha1').update(canonical(name)).digest());
}

/** The same from before OpenSSL 1.0: `-subject_hash_old`. */
export function oldNameHash(name: Uint8Array): string {
  return littleEndianHex(createHash('md5').update(name).digest());
}

function littleEndianHex(digest: Buffer): string {
  return digest.readUInt32LE(0).toString(16).padStart(8, '0');
}

const STRINGS: readonly number[] = [
  TAG.utf8String,
  TAG.printableString,
  TAG.teletexString,
  TAG.ia5String,
  TAG.bmpString,
  TAG.universalString,
];

/**
 * OpenSSL's canonical form: values as UTF-8 in lower case (ASCII only), blanks trimmed and collapsed; no outer header.
 */
function canonical(name: Uint8Array): Uint8Array {
  const rdns = children(readOne(name, TAG.sequence)).map((rdn) =>
    setOf(
      ...children(rdn).map((pair) => {
        const [type, value] = children(pair);
        if (type === undefined || value === undefined || !STRINGS.includes(value.tag)) return pair.raw;
        const plain = readText(value)
          .replace(/^[ \t\n\v\f\r]+|[ \t\n\v\f\r]+$/g, '')
          .replace(/[ \t\n\v\f\r]+/g, ' ')
          .replace(/[A-Z]/g, (letter) => letter.toLowerCase());
        return tlv(TAG.sequence, type.raw, text(TAG.utf8String, plain));
      }),
    ),
  );
  return Buffer.concat(rdns);
}
