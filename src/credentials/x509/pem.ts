/** One block of a PEM file (RFC 7468) and its place. */
export interface PemBlock {
  readonly label: string;
  readonly der: Uint8Array;
  /** The block as written, headers included (an encrypted key needs them). */
  readonly text: string;
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,40})-----\r?\n?([\s\S]*?)-----END \1-----/g;

/** The blocks of a text in order; like OpenSSL, ignores anything between them. */
export function readPem(text: string): readonly PemBlock[] {
  return [...text.matchAll(BLOCK)].map((found) => {
    const body = found[2] ?? '';
    const base64 = body.includes(':') ? body.replace(/^[\s\S]*?\r?\n\r?\n/, '') : body;
    return { label: found[1] ?? '', der: Buffer.from(base64, 'base64'), text: `${found[0]}\n` };
  });
}

export function writePem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

export const certificatePem = (der: Uint8Array): string => writePem('CERTIFICATE', der);
