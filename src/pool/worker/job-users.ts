import { existsSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import * as z from 'zod';
import { count, flag, maybe, type Read, text } from '../../util/schema.ts';
import { type Account, accountOf, groupsOf } from '../host/accounts.ts';
import type { SlotAccounts } from './slot-accounts.ts';

/** The account under which a job runs, if it is not the worker's own. */
export const JOB_USER = z.strictObject({
  name: text,
  uid: count.positive(),
  gid: count,
  groups: z.array(count),
  home: text,
  /** Nothing but one job at a time uses it, so whatever runs under it is that job's. */
  alone: flag,
  /** It runs the job of another pool. `inner`: its id in the worker's user namespace, if that is how it is kept apart. */
  stranger: maybe(z.strictObject({ network: flag, inner: maybe(count.positive()) })),
});
export type JobUser = Read<typeof JOB_USER>;

/** The account of last resort, as in HTCondor. */
const NOBODY = 'nobody';
/** How long an account is not looked up again, in milliseconds. */
const KNOWN_MS = 60_000;
/** Of the accounts slot1_1, slot1_2, … */
const MOST_SLOTS = 1024;

export interface JobUsersOptions {
  /**
   * `pool.run_as`: `owner`, `slot`, `nobody`, `root` (as the worker itself), or an account. It may change while the
   * worker runs.
   */
  readonly runAs: () => string;
  /** Whether the worker may change users. */
  readonly isRoot: boolean;
  /** The name of the worker's own account, which may change while the worker runs. */
  readonly self: () => string;
  /** The worker's own PATH. */
  readonly path: string | undefined;
  readonly find?: (name: string) => Account | undefined;
  /** What other workers of this machine use; without it, they use none. */
  readonly slots?: Pick<SlotAccounts, 'take' | 'release'>;
}

/** Which account a job gets: none (the worker's own), one, or none that it may have. */
export type Choice = { readonly user?: JobUser } | { readonly refusal: string };

/** Under which accounts of the machine a worker of root runs jobs: no one else's jobs as root, unless the setting says so. */
export class JobUsers {
  readonly #options: JobUsersOptions;
  readonly #setpriv: string | undefined;
  readonly #known = new Map<string, { readonly user: JobUser | undefined; readonly at: number }>();

  constructor(options: JobUsersOptions) {
    this.#options = options;
    this.#setpriv = options.isRoot ? programIn(options.path, 'setpriv') : undefined;
  }

  /** Whether jobs run under other accounts than the worker's. */
  get active(): boolean {
    return this.#options.isRoot && this.#options.runAs() !== 'root';
  }

  /**
   * `owner`: who submitted the job. `used`: user ids of jobs that are here. The agent's own user asked for the job and
   * for the machine, so it keeps its account even if that is root's, as in a container.
   */
  choose(owner: string | undefined, used: ReadonlySet<number>): Choice {
    if (!this.active) return {};
    if (this.#options.runAs() === 'owner' && owner === this.#options.self()) return {};
    if (this.#setpriv === undefined)
      return { refusal: 'its worker belongs to root and finds no setpriv (util-linux) to run jobs as somebody else' };
    const runAs = this.#options.runAs();
    if (runAs === 'slot')
      return this.#slot(used) ?? { refusal: 'no account slot1_1, slot1_2, … of its machine is free' };
    if (runAs === 'owner') {
      const user = owner === undefined ? undefined : this.#account(owner, false);
      if (user) return { user };
      const slot = this.#slot(used);
      if (slot) return slot;
    }
    const name = runAs === 'owner' ? NOBODY : runAs;
    const user = this.#account(name, false);
    return user ? { user } : { refusal: `its machine has no account '${name}' for jobs` };
  }

  /** An account for a job of another pool: a slot's, or `nobody`. */
  forStranger(runAs: string, used: ReadonlySet<number>): Choice {
    if (runAs === 'slot')
      return this.#slot(used) ?? { refusal: 'no account slot1_1, slot1_2, … of its machine is free' };
    const user = this.#account(NOBODY, false);
    return user ? { user } : { refusal: `its machine has no account '${NOBODY}' for jobs` };
  }

  /** The words before a command that let it run as `user`, and that end it if what waits for it dies. */
  command({ uid, gid, groups }: JobUser): readonly string[] {
    if (this.#setpriv === undefined) throw new Error('there is no setpriv');
    return [
      this.#setpriv,
      `--reuid=${uid}`,
      `--regid=${gid}`,
      groups.length === 0 ? '--clear-groups' : `--groups=${groups.join(',')}`,
      '--inh-caps=-all',
      '--pdeathsig=KILL',
      '--',
    ];
  }

  close(): void {
    this.#options.slots?.release();
  }

  #slot(used: ReadonlySet<number>): { readonly user: JobUser } | undefined {
    const { slots } = this.#options;
    slots?.release((name) => used.has(this.#account(name, true)?.uid ?? -1));
    for (let n = 1; n <= MOST_SLOTS; n++) {
      const user = this.#account(`slot1_${n}`, true);
      if (!user) return undefined;
      if (!used.has(user.uid) && slots?.take(user) !== false) return { user };
    }
    return undefined;
  }

  #account(name: string, alone: boolean): JobUser | undefined {
    const now = performance.now();
    const known = this.#known.get(name);
    if (known && now - known.at < KNOWN_MS) return known.user;
    const found = (this.#options.find ?? accountOf)(name);
    // Another name of root is root too.
    const user =
      found && found.uid > 0 ? { ...found, groups: [...groupsOf(found)].filter((gid) => gid > 0), alone } : undefined;
    this.#known.set(name, { user, at: now });
    return user;
  }
}

/** The variables that tell a program who it is. `scratch`: its sandbox. */
export function identityVariables({ name, home }: JobUser, scratch: string): Readonly<Record<string, string>> {
  return { HOME: existsSync(home) ? home : scratch, USER: name, LOGNAME: name };
}

function programIn(path = '/usr/sbin:/usr/bin:/sbin:/bin', name: string): string | undefined {
  return path
    .split(delimiter)
    .filter((dir) => dir.startsWith('/'))
    .map((dir) => join(dir, name))
    .find((file) => statSync(file, { throwIfNoEntry: false })?.isFile());
}
