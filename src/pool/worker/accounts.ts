import { type ClassAd, tryEvaluate } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { asError } from '../../errors.ts';
import { adFrom } from '../wire/ads.ts';
import { AttemptDir } from './attempt-dir.ts';
import type { ExecuteDir } from './execute-dir.ts';
import { copyProxy, handOver } from './hand-over.ts';
import type { PlacedJob } from './job-script.ts';
import { type Choice, identityVariables, type JobUser, type JobUsers } from './job-users.ts';
import type { Run } from './run.ts';

/** The accounts under which a worker of root runs jobs, and the directory in which they can work. */
export class Accounts {
  readonly #users: JobUsers;
  readonly #execute: ExecuteDir;

  constructor(users: JobUsers, execute: ExecuteDir) {
    this.#users = users;
    this.#execute = execute;
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
    if (!this.#users.active) return {};
    const live = [...runs].filter(({ phase }) => phase !== 'ended');
    const used = new Set(live.flatMap(({ record }) => (record.user ? [record.user.uid] : [])));
    try {
      const choice = this.#users.choose(ownerOf(own, kind), used);
      if ('user' in choice) this.#execute.open();
      return choice;
    } catch (thrown) {
      return { refusal: asError(thrown).message };
    }
  }

  command(user: JobUser): readonly string[] {
    return this.#users.command(user);
  }

  /** Gives a job's files to its account, and has it run under that. */
  ready({ dir, record: { user, spec } }: Run, placed: PlacedJob): PlacedJob {
    if (!user || !(dir instanceof AttemptDir)) return placed;
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

function ownerOf(own: AttrTexts | undefined, kind: ClassAd | undefined): string | undefined {
  const text = own?.['Owner'];
  const ad = adFrom(typeof text === 'string' ? { Owner: text } : {}).chainTo(kind);
  const expr = ad.get('Owner');
  const value = expr && tryEvaluate(expr, { my: ad });
  return typeof value === 'string' ? value : undefined;
}
