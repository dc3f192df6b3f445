import type { RslNames } from '../config/gram-adapter.ts';
import { GryphusError } from '../errors.ts';
import type { GramClient, Requested } from './client.ts';
import type { GramCredentials } from './credentials.ts';
import { GRAM_ERROR } from './errors.ts';
import { jobScript, sharedBlobs } from './package.ts';
import { type GramMessage, numberOf, signalQuery } from './protocol.ts';
import { jobRsl, stdioRsl } from './rsl.ts';
import type { GramRecord, GramStore } from './store.ts';

/** The result of an exchange about one job: GRAM's answer, or that the site does not know the job. */
export type GramAnswer = { readonly is: 'answer'; readonly message: GramMessage } | { readonly is: 'gone' };

const GONE: GramAnswer = { is: 'gone' };

export interface ConversationOptions {
  readonly client: GramClient;
  readonly store: GramStore;
  readonly credentials: GramCredentials;
  /** The names that the service's adapter uses for a job's requirements. */
  readonly rslNames: RslNames;
  /** The `https://host:port` of our GASS server. */
  readonly origin: () => string;
}

/**
 * Speaks with job managers about attempts. If a job manager does not answer, its gatekeeper starts it again from its
 * state file with the newest credential; running jobs do not notice.
 */
export class Conversation {
  readonly #options: ConversationOptions;
  /** Where a job manager of the service last answered; it serves all of the user's jobs there. */
  #living: string | undefined;
  /** Job managers are started one at a time because each may turn out to serve the waiting jobs too. */
  #reviving: Promise<unknown> = Promise.resolve();

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  baseOf({ key, token }: GramRecord): string {
    return `${this.#options.origin()}/${key}/${token}`;
  }

  /** Asks for the attempt's job, which then awaits its commit at the site. */
  async ask(record: GramRecord): Promise<Requested> {
    const { client, credentials, rslNames } = this.#options;
    const { key, spec, proxy } = record;
    const shared = new Map(
      sharedBlobs(record).map(({ sha256 }) => [sha256, `${this.#options.origin()}/shared/${sha256}`]),
    );
    const scriptBytes = jobScript().length;
    const rsl = jobRsl({ ...spec, base: this.baseOf(record), key, scriptBytes, shared, rslNames });
    const asked = await client.request(credentials.get(proxy), rsl, this.#callback);
    if (asked.ok) this.#living = originOf(asked.contact);
    return asked;
  }

  async status(record: GramRecord): Promise<GramAnswer> {
    return this.#say(record, 'status');
  }

  /** Sent only to the job manager that was asked for the job; `gone`: it no longer exists. */
  async commit({ proxy, contact }: GramRecord): Promise<GramAnswer> {
    const { client, credentials } = this.#options;
    if (contact === undefined) return GONE;
    const message = await client.signal(credentials.get(proxy), contact, 'commitRequest');
    if (message === undefined || isUnknown(message)) return GONE;
    this.#living = originOf(contact);
    return { is: 'answer', message };
  }

  async cancel(record: GramRecord): Promise<GramAnswer> {
    return this.#say(record, 'cancel');
  }

  /** Makes the site forget the job. */
  async end(record: GramRecord): Promise<GramAnswer> {
    return this.#say(record, signalQuery('commitEnd'));
  }

  /**
   * Gives the attempt's job manager a fresh proxy; if it is not running, it gets the proxy when it is started again.
   */
  async renew(record: GramRecord): Promise<void> {
    const { client, credentials } = this.#options;
    if (record.contact !== undefined) await client.renew(credentials.get(record.proxy), record.contact);
  }

  /** Tells the job where to send its results now. Skipped for a restarted job manager, which would lose the change. */
  async moved(record: GramRecord): Promise<void> {
    const { client, credentials, store, origin } = this.#options;
    if (record.contact === undefined || record.reloaded || record.origin === origin()) return;
    const rsl = stdioRsl(this.baseOf(record), true);
    const answer = await client.signal(credentials.get(record.proxy), record.contact, 'stdioUpdate', rsl);
    if (answer && numberOf(answer, 'failure-code') === 0) store.update(record.key, { origin: origin() });
  }

  /** Starts a new job manager for a job whose own is silent, has stopped, or could not send the results. */
  revive(record: GramRecord): Promise<GramAnswer> {
    const mine = this.#reviving.then(
      () => this.#revive(record),
      () => this.#revive(record),
    );
    this.#reviving = mine.catch(() => undefined);
    return mine;
  }

  async #say(record: GramRecord, query: string): Promise<GramAnswer> {
    const { client, credentials, store } = this.#options;
    if (record.contact === undefined) return GONE;
    const message = await client.query(credentials.get(record.proxy), record.contact, query);
    if (message && !isUnknown(message)) {
      this.#living = originOf(record.contact);
      return { is: 'answer', message };
    }
    const revived = await this.revive(record);
    const now = store.get(record.key);
    if (revived.is === 'gone' || query === 'status' || now?.contact === undefined) return revived;
    const again = await client.query(credentials.get(record.proxy), now.contact, query);
    return again && !isUnknown(again) ? { is: 'answer', message: again } : GONE;
  }

  async #revive(record: GramRecord): Promise<GramAnswer> {
    const found = await this.#served(record);
    if (found) return found;
    const { client, credentials, store, origin } = this.#options;
    const { contact, key } = record;
    if (contact === undefined) return GONE;
    const credential = credentials.get(record.proxy);
    const elsewhere = record.origin === origin() ? '' : stdioRsl(this.baseOf(record), false);
    const restarted = await client.restart(credential, contact, elsewhere, this.#callback);
    if (!restarted.ok) {
      if (restarted.code === GRAM_ERROR.noStateFile) return GONE;
      const busy = restarted.code === GRAM_ERROR.oldManagerAlive;
      throw new GryphusError(
        busy ? 'site-busy' : restarted.code === GRAM_ERROR.proxyExpired ? 'credential-expired' : 'protocol-error',
        `The job manager of ${key} cannot be started again: ${restarted.message}.`,
      );
    }
    this.#living = originOf(restarted.contact);
    store.update(key, {
      contact: restarted.contact,
      reloaded: true,
      ...(elsewhere === '' ? {} : { origin: origin() }),
    });
    // A restart must not commit a job that may have been uncommitted before the crash.
    const query = record.phase === 'committed' ? signalQuery('commitRequest') : 'status';
    const message = await client.query(credential, restarted.contact, query);
    return message && !isUnknown(message) ? { is: 'answer', message } : GONE;
  }

  /**
   * A job manager restarted for another job has read all jobs' state files: this job may be at the same path on its
   * port.
   */
  async #served(record: GramRecord): Promise<GramAnswer | undefined> {
    const { client, credentials, store } = this.#options;
    if (record.contact === undefined || this.#living === undefined) return undefined;
    if (originOf(record.contact) === this.#living) return undefined;
    const contact = `${this.#living}${new URL(record.contact).pathname}`;
    const message = await client.query(credentials.get(record.proxy), contact, 'status');
    if (message === undefined || isUnknown(message)) return undefined;
    store.update(record.key, { contact, reloaded: true });
    return { is: 'answer', message };
  }

  get #callback(): string {
    return `${this.#options.origin()}/callback`;
  }
}

function originOf(contact: string): string {
  return new URL(contact).origin;
}

function isUnknown(message: GramMessage): boolean {
  return numberOf(message, 'failure-code') === GRAM_ERROR.contactNotFound;
}
