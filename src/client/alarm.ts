import { hostname } from 'node:os';
import type { Paths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { asError, GryphusError } from '../errors.ts';
import { sendMail } from '../notify/mail.ts';
import { testMessage } from '../notify/messages.ts';
import { localAlarms } from '../notify/local-alarms.ts';
import { mailRoute, mailSender } from '../notify/mail-route.ts';
import type { CheckStep } from './types.ts';

/** Sends a test over every configured alarm channel; yields each result as it comes. */
export async function* testAlarms(paths: Paths): AsyncGenerator<CheckStep> {
  const settings = await loadSettings(paths);
  const message = testMessage(hostname(), Math.floor(Date.now() / 1000));
  const to = settings['notify.email'];
  const others = localAlarms(settings, message);
  if (to === undefined && others.length === 0) {
    throw new GryphusError('bad-config', 'No channel for alarms is configured.', {
      suggestions: [
        'gryphus config notify.email jane@example.org',
        "gryphus config alarms.hook 'COMMAND'   # the text is on its standard input",
        'gryphus config alarms.desktop true',
      ],
    });
  }
  if (to !== undefined) {
    yield await sendMailTo(to).then(
      () => ({ step: 'mail', ok: true, message: `sent to ${to} by ${settings['notify.method']}` }),
      (thrown: unknown) => {
        const error = asError(thrown);
        const remedy = error instanceof GryphusError ? error.suggestions.join(' ') : '';
        return { step: 'mail', ok: false, message: error.message, ...(remedy === '' ? {} : { remedy }) };
      },
    );
  }
  for (const [step, end] of others) {
    const how = await end;
    yield how.ok ? { step, ok: true, message: 'given' } : { step, ok: false, message: how.message };
  }

  async function sendMailTo(address: string): Promise<void> {
    await sendMail(mailRoute(settings), mailSender(settings), [address], message);
  }
}
