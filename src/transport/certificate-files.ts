import { readFileSync } from 'node:fs';
import { readCertificateLine, type SshCertificate } from '../util/ssh-certificate.ts';
import type { SshSettings } from './ssh-settings.ts';

export interface CertificateFile {
  readonly path: string;
  readonly blob: Buffer;
  readonly certificate: SshCertificate;
}

/** Reads a certificate file; undefined if it is missing or not a certificate. */
export function readCertificateFile(path: string): CertificateFile | undefined {
  const line = readText(path);
  const certificate = line === undefined ? 'it does not exist' : readCertificateLine(line);
  if (line === undefined || typeof certificate === 'string') return undefined;
  return { path, blob: Buffer.from(line.trim().split(/\s+/)[1] ?? '', 'base64'), certificate };
}

/** The first expired certificate for these settings; `now` is in milliseconds since 1970. */
export function expiredCertificate(settings: SshSettings, now: number): { name: string; end: Date } | undefined {
  const beside = settings.identityFiles.map(({ path }) => `${path}-cert.pub`);
  for (const path of [...settings.certificateFiles, ...beside]) {
    const end = readCertificateFile(path)?.certificate.validBefore;
    if (end !== undefined && end * 1000 <= now) return { name: path, end: new Date(end * 1000) };
  }
  return undefined;
}

/** The text of a small file, or undefined if it cannot be read. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
