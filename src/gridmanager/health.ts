import { GryphusError, type Retry } from '../errors.ts';
import type { ConnectionState, ConnectionView } from '../queue/tables.ts';
import { backOff, type RetryLimits } from './pacing.ts';

/** Minimum delay before retrying a site that needs a person to act, unless somebody logs in first; milliseconds. */
const PERSON_MS = 60_000;

/** A site's health: the result of the last exchange, and when the next may be tried. */
export class SiteHealth {
  #connection: ConnectionState = 'unused';
  #message = '';
  #since: number;
  #failures = 0;
  #notBefore = 0;

  readonly #limits: () => RetryLimits;

  constructor(now: number, limits: () => RetryLimits) {
    this.#since = now;
    this.#limits = limits;
  }

  get view(): ConnectionView {
    return { connection: this.#connection, message: this.#message, since: this.#since };
  }

  get failures(): number {
    return this.#failures;
  }

  /** How long to leave the site alone, milliseconds. Bounded, so that a clock that jumps back cannot prolong it. */
  waitMs(now: number): number {
    const longest = Math.max(PERSON_MS, this.#limits().max * 1.125);
    return Math.min(longest, Math.max(0, this.#notBefore - now));
  }

  /** Records a success. Returns true if the connection's state changed. */
  good(now: number): boolean {
    this.#failures = 0;
    this.#notBefore = 0;
    return this.#become('up', '', now);
  }

  /** Records a failure. Returns true if the connection's state changed. */
  bad(error: GryphusError, now: number, random: number): boolean {
    this.#failures += 1;
    const wait = backOff(this.#failures, random, this.#limits());
    this.#notBefore = now + (needsPerson(error.retry) ? Math.max(wait, PERSON_MS) : wait);
    return this.#become(connectionAfter(error), error.message, now);
  }

  /** Something was fixed (for example, a user logged in): try again at once. */
  encourage(): void {
    this.#notBefore = 0;
  }

  #become(connection: ConnectionState, message: string, now: number): boolean {
    const news = connection !== this.#connection;
    if (news) this.#since = now;
    this.#connection = connection;
    this.#message = message;
    return news;
  }
}

function needsPerson(retry: Retry): boolean {
  return retry !== 'later';
}

function connectionAfter(error: GryphusError): ConnectionState {
  if (error.code === 'needs-login') return 'needs-login';
  return error.retry === 'later' ? 'down' : 'refused';
}
