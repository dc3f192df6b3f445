import { attrRef, type ClassAd, tryEvaluate } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { asError } from '../../errors.ts';
import { adFrom } from '../wire/ads.ts';
import { AttemptDir } from './attempt-dir.ts';
import type { ExecuteDir } from './execute-dir.ts';
import { copyProxy, give, handOver } from './hand-over.ts';
import type { PlacedJob } from './job-script.ts';
import { type Choice, identityVariables, type JobUser, type JobUsers } from './job-users.ts';
import type { Run } from './run.ts';
import { clearAccount } from './stopping.ts';
import { isNearlyFull, NEARLY_FULL } from './stranger-disk.ts';
import type { Strangers } from './strangers.ts';

/** The accounts under which a worker of root runs jobs, and the directory in which they can work. */
export class Accounts {
  readonly #users: JobUsers;
  readonly #execute: ExecuteDir;
  readonly #strangers: Strangers | undefined;

  constructor(users: JobUsers, execute: ExecuteDir, strangers?: Strangers) {
    this.#users = users;
    this.#execute = execute;
    this.#strangers = strangers;
  }

  /** Whether it can run jobs of other pools. */
  ad(): AttrTexts {
    return this.#strangers?.ad() ?? {};
  }

  get dir(): string {
    return this.#execute.path;
  }

  /** Directories with jobs that earlier workers may have started. */
  get left(): readonly string[] {
    return this.#execute.left;
  }

  /** The account for a job. `own`: what its ad has instead of the ad of its kind. */
  choose(own: AttrTexts | undefined, kind: ClassAd | undefined, runs: Iterable<Run>): Choice {
    const stranger = adOf(own, kind);
    const isStranger = stringIn(stranger, 'FlockFrom') !== undefined;
    if (!isStranger && !this.#users.active) return {};
    const live = [...runs].filter(({ phase }) => phase !== 'ended');
    const used = new Set(live.flatMap(({ record }) => (record.user ? [record.user.uid] : [])));
    try {
      if (isStranger) return this.#forStranger(stranger, used);
      const choice = this.#users.choose(stringIn(stranger, 'Owner'), used);
      if ('user' in choice) this.#execute.open();
      return choice;
    } catch (thrown) {
      return { refusal: asError(thrown).message };
    }
  }

  #forStranger(job: ClassAd, used: ReadonlySet<number>): Choice {
    if (!this.#strangers) return { refusal: 'its worker runs no jobs of other pools' };
    const network = tryEvaluate(attrRef('FlockNetwork'), { my: job }) === true;
    const choice = this.#strangers.choose(stringIn(job, 'FlockRunAs') ?? 'auto', network, used);
    if (!('user' in choice)) return choice;
    this.#execute.open();
    return isNearlyFull(this.#execute.path) ? { refusal: NEARLY_FULL } : choice;
  }

  command(user: JobUser): readonly string[] {
    if (user.stranger) throw new Error('no shell is opened beside the job of another pool');
    return this.#users.command(user);
  }

  /** Makes the files of a job whose processes have ended the worker's again, as far as they were not; `undefined`: they were. */
  takeBack(run: Run, runs: Iterable<Run>): Promise<void> | undefined {
    const { dir, record } = run;
    if (!(dir instanceof AttemptDir) || record.user?.stranger?.inner === undefined || run.isBack) return undefined;
    const { user } = record;
    return clearAccount(run, runs)
      .then(() => this.#strangers?.takeBack(dir, user))
      .then(() => void (run.isBack = true));
  }

  /** The same at once, of a run that has not started. */
  takeBackNow({ dir, record: { user } }: Run): void {
    if (dir instanceof AttemptDir && user?.stranger) this.#strangers?.takeBackNow(dir, user);
  }

  /** Gives a job's files to its account, and has it run under that. */
  ready({ dir, record: { user, spec, size } }: Run, placed: PlacedJob): PlacedJob {
    if (!user || !(dir instanceof AttemptDir)) return placed;
    if (user.stranger && this.#strangers) {
      this.#strangers.give(dir, user, spec.joinStderr, (path) => give(path, user));
      const words = this.#strangers.command(user, dir, size.memoryMb);
      return { ...placed, ...words, cwd: dir.path, proxy: undefined, identity: identityVariables(user, dir.work) };
    }
    handOver(dir, user, spec.joinStderr);
    const { proxy } = placed;
    return {
      ...placed,
      proxy: proxy === undefined ? undefined : copyProxy(dir, user, proxy),
      become: this.#users.command(user),
      identity: identityVariables(user, dir.work),
    };
  }

  /** `idle`: no job is left that uses an account. */
  close(idle: boolean): void {
    if (idle) this.#users.close();
    this.#execute.close();
  }
}

export function refusalIn(choice: Choice): string | undefined {
  return 'refusal' in choice ? choice.refusal : undefined;
}

function adOf(own: AttrTexts | undefined, kind: ClassAd | undefined): ClassAd {
  const texts = Object.entries(own ?? {}).filter(([name, text]) => SEEN.has(name) && typeof text === 'string');
  return adFrom(Object.fromEntries(texts)).chainTo(kind);
}

/** What decides about the account of a job. */
const SEEN: ReadonlySet<string> = new Set(['Owner', 'FlockFrom', 'FlockRunAs', 'FlockNetwork']);

function stringIn(ad: ClassAd, name: string): string | undefined {
  const expr = ad.get(name);
  const value = expr && tryEvaluate(expr, { my: ad });
  return typeof value === 'string' ? value : undefined;
}
