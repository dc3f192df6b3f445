import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { writeWhole } from '../../util/private-file.ts';
import { newToken, type Token } from './auth.ts';

/** What the agent knows of a token that it issued. */
export interface IssuedToken extends Token {
  /** The site that its worker runs at; what the worker's own ad says is ignored. */
  readonly site: string;
  /** The token of this machine's worker, which reads the agent's files itself. */
  readonly local: boolean;
  /** Unix seconds after which it admits nobody. */
  readonly expires?: number;
  /** The maximum number of cores that its worker may contribute. */
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
/** The suffix of the file that names the worker a token is bound to. */
const BOUND = '.worker';

/**
 * Tokens are stored in separate files, 0600 in a 0700 directory: no secret is in Redis, an environment or on a command
 * line.
 */
export class Tokens {
  /** Where they are; it need not exist. */
  readonly dir: string;

  constructor(poolDir: string) {
    this.dir = join(poolDir, 'tokens');
  }

  /** Creates a token, which is on disk before it is returned. */
  issue(about: Omit<IssuedToken, keyof Token>): IssuedToken {
    const token = { ...newToken(), ...about };
    mkdirSync(this.dir, { recursive: true, mode: 0o700 });
    writeWhole(join(this.dir, token.id), JSON.stringify(token));
    return token;
  }

  /** `undefined` if there is no such token or it has expired. `now`: Unix seconds. */
  find(id: string, now: number): IssuedToken | undefined {
    if (!ID.test(id)) return undefined;
    const path = join(this.dir, id);
    if (!existsSync(path)) return undefined;
    const token = ISSUED.parse(JSON.parse(readFileSync(path, 'utf8')));
    return token.expires !== undefined && token.expires <= now ? undefined : token;
  }

  /**
   * Binds a token to the first worker that presents it. False for any other `instance`, even after a restart. The token
   * of this machine's worker, which never leaves the machine, is not bound, since that worker may get a new directory.
   */
  bind({ id, local }: IssuedToken, instance: string): boolean {
    if (local) return true;
    const path = join(this.dir, `${id}${BOUND}`);
    if (!existsSync(path)) writeWhole(path, instance);
    return readFileSync(path, 'utf8') === instance;
  }

  /** The token of this machine's worker. */
  local(): IssuedToken | undefined {
    for (const id of this.all()) {
      try {
        const token = this.find(id, 0);
        if (token?.local === true) return token;
      } catch {
        // Not one of our files.
      }
    }
    return undefined;
  }

  /** Sets a new expiry time. False if there is no such token or it has expired. Times are Unix seconds. */
  extend(id: string, expires: number, now: number): boolean {
    const known = this.find(id, now);
    if (!known) return false;
    writeWhole(join(this.dir, id), JSON.stringify({ ...known, expires }));
    return true;
  }

  /** From now on the token admits nobody. */
  revoke(id: string): void {
    if (ID.test(id)) for (const name of [id, `${id}${BOUND}`]) rmSync(join(this.dir, name), { force: true });
  }

  all(): readonly string[] {
    return existsSync(this.dir) ? readdirSync(this.dir).filter((name) => ID.test(name)) : [];
  }
}
