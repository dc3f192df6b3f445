import { GryphusError } from '../errors.ts';

/**
 * Whether a failure concerns the site or our access to it; a job never fails because of one (docs/ARCHITECTURE.md,
 * invariant 5).
 */
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
