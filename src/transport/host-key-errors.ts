import { GryphusError } from '../errors.ts';
import { fingerprint, keyType } from './public-key.ts';
import { type HostKeyVerdict, plainName } from './known-hosts.ts';
import { shellWords } from '../util/shell-quote.ts';

/**
 * The refusal of a host key that known_hosts does not vouch for. `file` is where a new key would be written; `way` says
 * how to reach the site for a manual login.
 */
export function hostKeyError(
  verdict: Exclude<HostKeyVerdict, { kind: 'known' }>,
  name: string,
  key: Buffer,
  file: string,
  way: { readonly user: string; readonly hostName: string; readonly port: number },
): GryphusError {
  const shown = `${keyType(key)} ${fingerprint(key)}`;
  switch (verdict.kind) {
    case 'unknown': {
      const port = way.port === 22 ? [] : ['-p', String(way.port)];
      // The name under which the key is stored (HostKeyAlias) may differ from the host's address.
      const alias = plainName(name) === way.hostName.toLowerCase() ? [] : ['-o', `HostKeyAlias=${name}`];
      const words = ['ssh', '-o', 'StrictHostKeyChecking=ask', ...alias, ...port, `${way.user}@${way.hostName}`];
      return new GryphusError('host-key-unknown', `The host key of ${name} is not known; it presented ${shown}.`, {
        suggestions: [
          'Compare that fingerprint with the one that the site publishes.',
          `If it is right, log in once by hand, which adds it to ${file}: ${shellWords(words)} true`,
        ],
      });
    }
    case 'changed': {
      const { by } = verdict;
      return new GryphusError(
        'host-key-changed',
        `The host key of ${name} has changed: it presented ${shown}, ${by.file} line ${by.line} has ${fingerprint(by.key)}.`,
        {
          suggestions: [
            'Someone may be intercepting the connection; ask the site whether its key was changed.',
            `If it was, remove the old one: ${shellWords(['ssh-keygen', '-f', by.file, '-R', name])}`,
          ],
        },
      );
    }
    case 'revoked':
      return new GryphusError(
        'host-key-changed',
        `The host key that ${name} presented (${shown}) is revoked by ${verdict.by.file} line ${verdict.by.line}.`,
        { suggestions: ['Do not log in; ask the site for its current key.'] },
      );
    case 'bad-certificate':
      return new GryphusError('host-key-unknown', `The host certificate of ${name} is not valid: ${verdict.reason}.`, {
        suggestions: ['Ask the site for the line of its certificate authority in known_hosts.'],
      });
  }
}
