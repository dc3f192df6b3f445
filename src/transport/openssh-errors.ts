import { asError, GryphusError } from '../errors.ts';
import { needsLogin, TYPED_METHODS } from './login-errors.ts';
import { shellWords } from '../util/shell-quote.ts';

/**
 * Translates the messages of the system's ssh after a failed connection (OpenSSH 7 to 10, run with -v). `answered`: a
 * person was there to answer questions.
 */
export function opensshError(site: string, stderr: string, answered: boolean): GryphusError {
  const said = spoken(stderr);
  const shown = /Server host key: (\S+ SHA256:\S+)/.exec(stderr)?.[1] ?? 'a key';

  const offending = /Offending .*key in (.*):(\d+)/.exec(stderr);
  if (/REMOTE HOST IDENTIFICATION HAS CHANGED/.test(stderr) || /REVOKED HOST KEY/.test(stderr)) {
    const revoked = /REVOKED HOST KEY/.test(stderr);
    const [, file = 'known_hosts', line = '?'] = offending ?? /marked as revoked in (.*):(\d+)/.exec(stderr) ?? [];
    const name = /Host key for (\S+) has changed/.exec(stderr)?.[1] ?? site.replace(/^.*@/, '');
    return new GryphusError(
      'host-key-changed',
      revoked
        ? `The host key that ${site} presented (${shown}) is revoked by ${file}.`
        : `The host key of ${site} has changed: it presented ${shown}, ${file} line ${line} has another.`,
      {
        suggestions: [
          'Someone may be intercepting the connection; ask the site whether its key was changed.',
          ...(revoked ? [] : [`If it was, remove the old one: ${shellWords(['ssh-keygen', '-f', file, '-R', name])}`]),
        ],
      },
    );
  }
  if (/Host key verification failed|host key is known for/.test(stderr)) {
    return new GryphusError('host-key-unknown', `The host key of ${site} is not known; it presented ${shown}.`, {
      suggestions: [
        'Compare that fingerprint with the one that the site publishes.',
        'If it is right, log in once by hand with ssh, which adds it to known_hosts.',
      ],
    });
  }
  const open = /Permissions \S+ for '(.*)' are too open/.exec(stderr)?.[1];
  if (open !== undefined) {
    return new GryphusError('login-refused', `${site} cannot use ${open}: others can read that key.`, {
      suggestions: [`Run: ${shellWords(['chmod', '600', open])}`],
    });
  }
  const denied = /Permission denied \(([^)]*)\)/.exec(stderr)?.[1];
  if (denied !== undefined) {
    const methods = denied.split(',');
    if (!answered && methods.some((method) => TYPED_METHODS.has(method))) {
      return needsLogin(site, methods, 'and there is no terminal to type it');
    }
    if (!answered && /Server accepts key/.test(stderr))
      return needsLogin(site, [], 'and there is no terminal to type it');
    return new GryphusError('login-refused', `${site} refused the log-in: ${said}.`, {
      suggestions: [`The server accepts ${denied}; check user name and IdentityFile.`],
    });
  }
  if (/Too many authentication failures/.test(stderr)) {
    return new GryphusError('login-refused', `${site} refused the log-in after too many keys.`, {
      suggestions: ['Name the right key in ~/.ssh/config: IdentityFile, and IdentitiesOnly yes.'],
    });
  }
  if (
    /Bad configuration option|bad configuration options|Bad owner or permissions|keyword .* extra arguments/.test(
      stderr,
    )
  ) {
    return new GryphusError('bad-config', `ssh cannot read its configuration: ${said}.`);
  }
  return new GryphusError('site-unreachable', `${site} cannot be reached: ${said || 'ssh exited without a message'}.`);
}

/** Whether a connection ended before the server sent anything. */
export function wasDropped(thrown: unknown): boolean {
  return asError(thrown).message.includes('kex_exchange_identification');
}

/** Whether ssh reported that the server refused one more session on the shared connection. */
export function isSessionRefusal(stderr: string): boolean {
  return /session request failed|open refused by peer|open failed/i.test(stderr);
}

/** ssh's own messages without its debug lines, as one line. */
function spoken(stderr: string): string {
  const lines = stderr
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(debug\d:|OpenSSH_|Authenticated to|Transferred:|Bytes per second)/.test(line));
  return lines.slice(-3).join(' ').replace(/\.+$/, '').slice(0, 300);
}
