import { GryphusError } from '../errors.ts';

/** Methods whose answers a person types. */
export const TYPED_METHODS: ReadonlySet<string> = new Set(['keyboard-interactive', 'password']);

/** For what only the ssh program can do. */
export const USE_OPENSSH = 'Use the ssh program: `transport = "openssh"` in the site\'s file.';

export function certificateExpired(site: string, { name, end }: { name: string; end: Date }): GryphusError {
  return new GryphusError(
    'credential-expired',
    `The SSH certificate ${name} for ${site} expired on ${end.toISOString()}.`,
    {
      suggestions: ['Get a new one from the site, then release the jobs.'],
    },
  );
}

/** `offered`: the methods that the server accepts; `why` ends the sentence; `more`: further advice. */
export function needsLogin(
  site: string,
  offered: readonly string[],
  why: string,
  more: readonly string[] = [],
): GryphusError {
  const wants = offered.filter((method) => TYPED_METHODS.has(method)).join(' or ') || 'a passphrase';
  return new GryphusError('needs-login', `${site} requires an interactive log-in (${wants}), ${why}.`, {
    suggestions: ['Log in once: gryphus site login SITE.', ...more],
  });
}
