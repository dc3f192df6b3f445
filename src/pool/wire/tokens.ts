import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { writeWhole } from '../../util/private-file.ts';
import { newToken, type Token } from './auth.ts';

/** What the agent knows of a token that it gave out. */
export interface IssuedToken extends Token {
  /** The site that its worker runs at: what the worker's ad says of it is not asked. */
  readonly site: string;
  /** The worker is one of this machine: it reads the files of home itself. */
  readonly local: boolean;
  /** Unix seconds after which it lets nobody in any more. */
  readonly expires?: number;
  /** The most cores that its worker may bring into the pool. */
  readonly cpus?: number;
}

const ISSUED = z.object({
  id: z.string(),
  secret: z.string().regex(/^[0-9a-f]{64}$/),
  site: z.string(),
  local: z.boolean(),
  expires: z.exactOptional(z.number()),
  cpus: z.exactOptional(z.number()),
});
const ID = /^[A-Za-z0-9_-]{8,64}$/;
/** Ends the name of the file that says which worker a token let in. */
const BOUND = '.worker';

/** Tokens are files of their own, 0600 in a 0700 directory: no secret is in Redis, in an environment or on a command line. */
export class Tokens {
  readonly #dir: string;

  constructor(poolDir: string) {
    this.#dir = join(poolDir, 'tokens');
  }

  /** A fresh token, on disk before it is answered. */
  issue(about: Omit<IssuedToken, keyof Token>): IssuedToken {
    const token = { ...newToken(), ...about };
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    writeWhole(join(this.#dir, token.id), JSON.stringify(token));
    return token;
  }

  /** `undefined` where there is none of the name, or its time is over. `now`: Unix seconds. */
  find(id: string, now: number): IssuedToken | undefined {
    if (!ID.test(id)) return undefined;
    const path = join(this.#dir, id);
    if (!existsSync(path)) return undefined;
    const token = ISSUED.parse(JSON.parse(readFileSync(path, 'utf8')));
    return token.expires !== undefined && token.expires <= now ? undefined : token;
  }

  /**
   * A token is for one worker: the first that shows it. False for any other `instance`, also after a restart. The worker of
   * this machine, whose token stays here, may have a new directory.
   */
  bind({ id, local }: IssuedToken, instance: string): boolean {
    if (local) return true;
    const path = join(this.#dir, `${id}${BOUND}`);
    if (!existsSync(path)) writeWhole(path, instance);
    return readFileSync(path, 'utf8') === instance;
  }

  /** That of the worker of this machine. */
  local(): IssuedToken | undefined {
    for (const id of this.all()) {
      try {
        const token = this.find(id, 0);
        if (token?.local === true) return token;
      } catch {
        // A file that is none of ours.
      }
    }
    return undefined;
  }

  /** It lasts until then; false where there is no such token, or it has ended. `now`: Unix seconds. */
  extend(id: string, expires: number, now: number): boolean {
    const known = this.find(id, now);
    if (!known) return false;
    writeWhole(join(this.#dir, id), JSON.stringify({ ...known, expires }));
    return true;
  }

  /** From now on it lets nobody in. */
  revoke(id: string): void {
    if (ID.test(id)) for (const name of [id, `${id}${BOUND}`]) rmSync(join(this.#dir, name), { force: true });
  }

  all(): readonly string[] {
    return existsSync(this.#dir) ? readdirSync(this.#dir).filter((name) => ID.test(name)) : [];
  }
}
