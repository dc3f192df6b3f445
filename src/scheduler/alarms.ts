import type { Settings } from '../config/settings.ts';
import { localAlarms } from '../notify/local-alarms.ts';
import type { Message } from '../notify/messages.ts';
import type { Outbox } from './outbox.ts';

export interface AlarmOptions {
  readonly settings: Settings;
  readonly outbox: Pick<Outbox, 'put'>;
  readonly log: (message: string, facts?: object) => void;
}

/** How a user is told that something needs attention: mail, a command of theirs, a desktop notification. */
export class Alarms {
  readonly #options: AlarmOptions;

  constructor(options: AlarmOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the mail is in the outbox; a failing hook or desktop notification is logged. `since`: Unix seconds.
   */
  async raise(message: Message, since: number): Promise<void> {
    const { settings, outbox, log } = this.#options;
    const to = settings['notify.email'];
    if (settings['notify.problems'] && to !== undefined) await outbox.put([{ to, message, since }]);
    for (const [name, end] of localAlarms(settings, message)) {
      void end.then((how) => {
        if (!how.ok) log('an alarm was not sent', { by: name, why: how.message });
        return how;
      });
    }
  }
}
