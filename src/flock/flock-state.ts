import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { Paths } from '../config/paths.ts';
import type { Token } from '../pool/wire/auth.ts';
import type { Tokens } from '../pool/wire/tokens.ts';
import { bootId, sinceBootMs } from '../util/boot-clock.ts';
import { writeUnflushed, writeWhole } from '../util/private-file.ts';
import { amount, count, flag, maybe, text } from '../util/schema.ts';
import { BALANCE, Balance } from './balance.ts';

/** The gateway's files, all in a 0700 directory of the agent's state. */
export interface FlockPlaces {
  readonly dir: string;
  readonly borrowed: string;
  readonly lent: string;
  readonly files: string;
  readonly status: string;
}

export function flockPlaces({ stateDir }: Pick<Paths, 'stateDir'>): FlockPlaces {
  const dir = join(stateDir, 'flock');
  return {
    dir,
    borrowed: join(dir, 'borrowed.journal'),
    lent: join(dir, 'lent.journal'),
    files: join(dir, 'files'),
    status: join(dir, 'status.json'),
  };
}

const refusal = z.strictObject({ clause: text, message: text });

/** What `gryphus flock` shows of a partner. */
export const PARTNER_STATUS = z.strictObject({
  name: text,
  connected: flag,
  /** Its agent, once it has connected. */
  agent: maybe(text),
  trouble: maybe(text),
  to: flag,
  from: flag,
  paused: flag,
  /** Why our jobs cannot go there, and why we lend nothing there, now. */
  closed: maybe(refusal),
  lending: maybe(refusal),
  /** Cores of our jobs there, of theirs here, and what they offer. */
  borrowed: amount,
  lent: amount,
  offered: amount,
  machines: count,
  /** What of it belongs to pools beyond the partner, by what these are called. */
  beyond: maybe(z.array(z.strictObject({ pool: text, cores: amount, machines: count }))),
  /** It takes jobs that we pass on for others. */
  takesForwarded: maybe(z.literal(true)),
  day: z.strictObject({ lent: amount, borrowed: amount }),
  month: z.strictObject({ lent: amount, borrowed: amount }),
  balance: z.enum(['none', 'day', 'month']),
  slack: amount,
  jobs: z.array(
    z.strictObject({
      key: text,
      user: text,
      where: z.enum(['here', 'there']),
      is: text,
      cpus: amount,
      /** Of a job that is passed on: its pools from its home to where it runs, ours `here`. */
      way: maybe(text),
    }),
  ),
  /** Why results and inputs come by the gateways for now, if direct connections fail; and seconds until they are tried again. */
  detour: maybe(z.strictObject({ message: text, seconds: amount })),
  refusals: z.array(refusal.extend({ at: amount, by: z.enum(['us', 'them']), times: count })),
});
export type PartnerStatus = z.infer<typeof PARTNER_STATUS>;

const STATUS = z.strictObject({
  /** Unix seconds, and the gateway's process. */
  at: amount,
  pid: count,
  /** Where it listens. */
  port: maybe(count),
  trouble: maybe(text),
  partners: z.array(PARTNER_STATUS),
});
export type FlockStatus = z.infer<typeof STATUS>;

/** A gateway that is alive writes at least this often, in seconds. */
export const STATUS_SECONDS = 60;

/** What the gateway last wrote; `undefined` if there is none. */
export function readFlockStatus(paths: Pick<Paths, 'stateDir'>): FlockStatus | undefined {
  return readAs(STATUS, flockPlaces(paths).status);
}

export function writeFlockStatus({ status }: FlockPlaces, now: FlockStatus): void {
  // Worth nothing after its process.
  writeUnflushed(status, JSON.stringify(STATUS.parse(now)));
}

const MEMORY = z.strictObject({
  /** The agent that first connected with this key. */
  agent: maybe(text),
  key: maybe(text),
  balance: BALANCE,
});
const TOKENS = z.record(text, z.strictObject({ id: text, secret: text }));
const HEARD = z.strictObject({ boot: text, uptime: amount });
type Heard = z.infer<typeof HEARD>;
/** How often the time at which a partner was last heard is written; after a restart it counts as silent for up to this much longer. Seconds. */
const HEARD_SECONDS = 15;

/** What a gateway remembers of its partners from one process to the next. */
export class FlockMemory {
  readonly #places: FlockPlaces;
  readonly #heard = new Map<string, Heard | undefined>();
  /** What is on the disk of it, for each partner. */
  readonly #written = new Map<string, Heard>();
  /** The last text saved of each partner. */
  readonly #saved = new Map<string, string>();

  constructor(places: FlockPlaces) {
    this.#places = places;
    mkdirSync(join(places.dir, 'partners'), { recursive: true, mode: 0o700 });
  }

  /** `key`: the name of the present key: another key is another acquaintance. */
  partner(name: string, key: string): { readonly agent: string | undefined; readonly balance: Balance } {
    const known = readAs(MEMORY, this.#file(name, 'json'));
    return {
      agent: known?.key === key ? known.agent : undefined,
      balance: new Balance(known?.balance ?? []),
    };
  }

  save(name: string, key: string, agent: string | undefined, balance: Balance): void {
    const memory = JSON.stringify({ key, balance: [...balance.hours], ...(agent === undefined ? {} : { agent }) });
    if (this.#saved.get(name) === memory) return;
    writeWhole(this.#file(name, 'json'), memory);
    this.#saved.set(name, memory);
  }

  /** The token of a worker that stands for a partner's machines. */
  token(worker: string, site: string, tokens: Tokens): Token {
    const file = join(this.#places.dir, 'tokens.json');
    const all = readAs(TOKENS, file) ?? {};
    const known = all[worker];
    if (known && tokens.find(known.id, 0)) return known;
    const { id, secret } = tokens.issue({ site, local: false });
    writeWhole(file, JSON.stringify({ ...all, [worker]: { id, secret } }));
    return { id, secret };
  }

  /** The partner has confirmed that it hears us. `at`: what `uptime` said when that was true. `isNeeded`: jobs of either side depend on it. */
  confirmed(name: string, at: number, isNeeded: boolean): void {
    this.#heard.set(name, { boot: bootId(), uptime: at });
    if (isNeeded) this.keep(name);
  }

  /** From now on a later process has to know when the partner was last heard: a job depends on it. */
  keep(name: string): void {
    const heard = this.#heard.get(name);
    const written = this.#written.get(name);
    if (!heard || (written?.boot === heard.boot && heard.uptime - written.uptime < HEARD_SECONDS)) return;
    // Worth nothing after the next boot.
    writeUnflushed(this.#file(name, 'heard'), JSON.stringify(heard));
    this.#written.set(name, heard);
  }

  /**
   * Seconds since then, through any number of processes; for ever if the machine was started since. `now`: what `uptime` says, once for
   * all that are asked about.
   */
  silence(name: string, now = uptime()): number {
    if (!this.#heard.has(name)) this.#heard.set(name, readAs(HEARD, this.#file(name, 'heard')));
    const known = this.#heard.get(name);
    if (!known) return 0;
    return known.boot === bootId() ? Math.max(0, now - known.uptime) : Number.POSITIVE_INFINITY;
  }

  forget(name: string): void {
    for (const kind of ['json', 'heard'] as const) rmSync(this.#file(name, kind), { force: true });
    this.#heard.delete(name);
    this.#written.delete(name);
    this.#saved.delete(name);
  }

  #file(name: string, kind: 'json' | 'heard'): string {
    return join(this.#places.dir, 'partners', `${name}.${kind}`);
  }
}

function readAs<S extends z.ZodType>(schema: S, file: string): z.infer<S> | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}

/** Seconds that no setting of the clock changes, the same for all processes. */
export function uptime(): number {
  return sinceBootMs() / 1000;
}
