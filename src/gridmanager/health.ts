import { GryphusError, type Retry } from '../errors.ts';
import { backOff, type RetryLimits } from './pacing.ts';

export type Connection = 'unused' | 'up' | 'down' | 'needs-login' | 'refused';

export interface HealthView {
  readonly connection: Connection;
  readonly message: string;
  /** Unix milliseconds. */
  readonly since: number;
  /** A fault of ours that holds up work there, whatever the connection is. */
  readonly trouble?: string;
}

/** Sites that want a person are asked again no more often, unless somebody logs in. */
const PERSON_MS = 60_000;

/** How it goes with one site: what the last exchange gave, and from when on the next may be tried. */
export class SiteHealth {
  #connection: Connection = 'unused';
  #words = '';
  #since: number;
  #failures = 0;
  #notBefore = 0;

  readonly #limits: () => RetryLimits;

  constructor(now: number, limits: () => RetryLimits) {
    this.#since = now;
    this.#limits = limits;
  }

  get view(): HealthView {
    return { connection: this.#connection, message: this.#words, since: this.#since };
  }

  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds to leave the site alone. A clock that jumped back must not prolong it. */
  waitMs(now: number): number {
    const longest = Math.max(PERSON_MS, this.#limits().max * 1.125);
    return Math.min(longest, Math.max(0, this.#notBefore - now));
  }

  /** True when this is news. */
  good(now: number): boolean {
    this.#failures = 0;
    this.#notBefore = 0;
    return this.#become('up', '', now);
  }

  /** True when this is news. */
  bad(error: GryphusError, now: number, random: number): boolean {
    this.#failures += 1;
    const wait = backOff(this.#failures, random, this.#limits());
    this.#notBefore = now + (needsPerson(error.retry) ? Math.max(wait, PERSON_MS) : wait);
    return this.#become(connectionAfter(error), error.message, now);
  }

  /** Somebody fixed something: try at once. */
  encourage(): void {
    this.#notBefore = 0;
  }

  #become(connection: Connection, message: string, now: number): boolean {
    const news = connection !== this.#connection;
    if (news) this.#since = now;
    this.#connection = connection;
    this.#words = message;
    return news;
  }
}

function needsPerson(retry: Retry): boolean {
  return retry !== 'later';
}

function connectionAfter(error: GryphusError): Connection {
  if (error.code === 'needs-login') return 'needs-login';
  return error.retry === 'later' ? 'down' : 'refused';
}
