import { GryphusError } from '../errors.ts';

/** A failure that says something of the site and nothing of us; a job is never failed for one (docs/ARCHITECTURE.md, invariant 5). */
export function isAboutTheSite(thrown: unknown): thrown is GryphusError {
  return thrown instanceof GryphusError && ABOUT_THE_SITE.has(thrown.code);
}

const ABOUT_THE_SITE: ReadonlySet<string> = new Set([
  'site-unreachable',
  'site-busy',
  'site-refused',
  'site-unknown',
  'host-key-changed',
  'host-key-unknown',
  'login-refused',
  'needs-login',
  'credential-expired',
  'credential-invalid',
  'protocol-error',
  'timeout',
  'missing-program',
  'bad-config',
  'disk-full',
]);
