import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { writeWhole } from '../util/private-file.ts';
import { newToken, type Token } from './auth.ts';

/** What the agent knows of a token that it gave out. */
export interface IssuedToken extends Token {
  /** The site that its worker runs at: what the worker's ad says of it is not asked. */
  readonly site: string;
  /** The worker is one of this machine: it reads the files of home itself. */
  readonly local: boolean;
  /** Unix seconds after which it lets nobody in any more. */
  readonly expires?: number;
}

const ISSUED = z.object({
  id: z.string(),
  secret: z.string().regex(/^[0-9a-f]{64}$/),
  site: z.string(),
  local: z.boolean(),
  expires: z.number().optional(),
});
const ID = /^[A-Za-z0-9_-]{8,64}$/;

/** Tokens are files of their own, 0600 in a 0700 directory: no secret is in Redis, in an environment or on a command line. */
export class Tokens {
  readonly #dir: string;

  constructor(poolDir: string) {
    this.#dir = join(poolDir, 'tokens');
  }

  /** A fresh token, on disk before it is answered. */
  issue(about: { readonly site: string; readonly local: boolean; readonly expires?: number }): IssuedToken {
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
    const { expires, ...token } = ISSUED.parse(JSON.parse(readFileSync(path, 'utf8')));
    if (expires !== undefined && expires <= now) return undefined;
    return expires === undefined ? token : { ...token, expires };
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
    if (ID.test(id)) rmSync(join(this.#dir, id), { force: true });
  }

  all(): readonly string[] {
    return existsSync(this.#dir) ? readdirSync(this.#dir).filter((name) => ID.test(name)) : [];
  }
}
