import { createHash } from 'node:crypto';
import { GryphusError } from '../errors.ts';

/** An OpenSSH certificate (PROTOCOL.certkeys of OpenSSH); times in Unix seconds. */
export interface SshCertificate {
  /** `ssh-ed25519-cert-v01@openssh.com`, say. */
  readonly type: string;
  readonly use: 'user' | 'host';
  readonly serial: bigint;
  readonly keyId: string;
  /** Log-in names that it is good for; none means any. */
  readonly principals: readonly string[];
  readonly validAfter: number;
  /** `undefined`: for ever. */
  readonly validBefore: number | undefined;
  readonly criticalOptions: Readonly<Record<string, string>>;
  readonly extensions: readonly string[];
  /** As `ssh-keygen -l` prints them: `SHA256:…`. */
  readonly fingerprint: string;
  readonly caFingerprint: string;
  readonly caType: string;
}

/** How many fields of the public key stand between the nonce and the serial. */
const KEY_FIELDS: Readonly<Record<string, number>> = {
  'ssh-rsa-cert-v01@openssh.com': 2,
  'rsa-sha2-256-cert-v01@openssh.com': 2,
  'rsa-sha2-512-cert-v01@openssh.com': 2,
  'ssh-dss-cert-v01@openssh.com': 4,
  'ecdsa-sha2-nistp256-cert-v01@openssh.com': 2,
  'ecdsa-sha2-nistp384-cert-v01@openssh.com': 2,
  'ecdsa-sha2-nistp521-cert-v01@openssh.com': 2,
  'sk-ecdsa-sha2-nistp256-cert-v01@openssh.com': 3,
  'ssh-ed25519-cert-v01@openssh.com': 1,
  'sk-ssh-ed25519-cert-v01@openssh.com': 2,
};

const FOR_EVER = 0xffff_ffff_ffff_ffffn;

/** Reads `id_x-cert.pub`. `where` names the file in the error, 'credential-invalid'. */
export function readSshCertificate(line: string, where: string): SshCertificate {
  const broken = (why: string) => new GryphusError('credential-invalid', `${where} is no OpenSSH certificate: ${why}.`);
  const [type = '', base64 = ''] = line.trim().split(/\s+/);
  const count = KEY_FIELDS[type];
  if (count === undefined) throw broken(type === '' ? 'it is empty' : 'its first word names no kind of certificate');
  const reader = new WireReader(Buffer.from(base64, 'base64'), () => broken('it ends in the middle'));
  if (reader.text() !== type) throw broken('its first word is not the kind that is inside');
  reader.bytes(); // nonce
  const publicKey = Array.from({ length: count }, () => reader.bytes());
  const [serial, use] = [reader.uint64(), reader.uint32()];
  if (use !== 1 && use !== 2) throw broken(`it is neither for users nor for hosts (${use})`);
  const keyId = reader.text();
  const principals = reader.inside().texts();
  const [validAfter, validBefore] = [reader.uint64(), reader.uint64()];
  const critical = reader.inside();
  const criticalOptions: [string, string][] = [];
  while (!critical.atEnd()) criticalOptions.push([critical.text(), optionText(critical.inside())]);
  const extensions = reader.inside();
  const names: string[] = [];
  while (!extensions.atEnd()) {
    names.push(extensions.text());
    extensions.bytes();
  }
  reader.bytes(); // reserved
  const authority = reader.bytes();
  const plain = wire([
    Buffer.from(type.replace('-cert-v01', '').replace(/^(?!sk-)(.*)@openssh\.com$/, '$1')),
    ...publicKey,
  ]);
  return {
    type,
    use: use === 1 ? 'user' : 'host',
    serial,
    keyId,
    principals,
    validAfter: Number(validAfter),
    validBefore: validBefore === FOR_EVER ? undefined : Number(validBefore),
    criticalOptions: Object.fromEntries(criticalOptions),
    extensions: names,
    fingerprint: fingerprint(plain),
    caFingerprint: fingerprint(authority),
    caType: new WireReader(authority, () => broken('its authority is damaged')).text(),
  };
}

/** The value of an option is a string in a string; an option without a value is empty. */
function optionText(value: WireReader): string {
  return value.atEnd() ? '' : value.text();
}

function fingerprint(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

function wire(fields: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(
    fields.flatMap((field) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(field.length);
      return [length, field];
    }),
  );
}

/** The data types of RFC 4251, section 5. */
class WireReader {
  readonly #bytes: Buffer;
  readonly #broken: () => Error;
  #at = 0;

  constructor(bytes: Buffer, broken: () => Error) {
    this.#bytes = bytes;
    this.#broken = broken;
  }

  atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  #take(count: number): Buffer {
    if (this.#at + count > this.#bytes.length) throw this.#broken();
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  uint32(): number {
    return this.#take(4).readUInt32BE();
  }

  uint64(): bigint {
    return this.#take(8).readBigUInt64BE();
  }

  bytes(): Buffer {
    return this.#take(this.uint32());
  }

  text(): string {
    return this.bytes().toString('utf8');
  }

  inside(): WireReader {
    return new WireReader(this.bytes(), this.#broken);
  }

  texts(): readonly string[] {
    const all: string[] = [];
    while (!this.atEnd()) all.push(this.text());
    return all;
  }
}
