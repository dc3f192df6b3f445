import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Settings } from '../config/settings.ts';
import { asError, GryphusError } from '../errors.ts';
import type { MailRoute } from './mail.ts';

/** How mail leaves this machine, by the settings. Throws 'bad-config' if something is missing. */
export function mailRoute(settings: Settings): MailRoute {
  if (settings['notify.method'] === 'sendmail') return { method: 'sendmail', path: settings['notify.sendmail'] };
  const host = settings['notify.smtp.host'];
  if (host === undefined) {
    throw new GryphusError('bad-config', 'notify.method is smtp, but notify.smtp.host is not set.', {
      suggestions: ['Run `gryphus config notify.smtp.host HOST`.'],
    });
  }
  const user = settings['notify.smtp.user'];
  const file = settings['notify.smtp.password_file'];
  const command = settings['notify.smtp.password_command'];
  const ca = settings['notify.smtp.ca'];
  return {
    method: 'smtp',
    host,
    port: settings['notify.smtp.port'],
    security: settings['notify.smtp.security'],
    ...(user === undefined ? {} : { user }),
    ...(file === undefined ? (command === undefined ? {} : { password: { command } }) : { password: { file } }),
    ...(ca === undefined ? {} : { ca: authorities(ca) }),
  };
}

export function mailSender(settings: Settings): string {
  return settings['notify.from'] ?? `gryphus@${hostname()}`;
}

function authorities(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (thrown) {
    throw new GryphusError('bad-config', `notify.smtp.ca: ${asError(thrown).message}.`, { cause: thrown });
  }
}
