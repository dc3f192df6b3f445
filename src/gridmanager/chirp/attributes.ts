import { GryphusError } from '../../errors.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { checkExpression, quoted, readNumber, readString } from '../../job/values.ts';
import { oneLine } from '../../util/plain-text.ts';
import type { Change, JobRecord } from '../../queue/api.ts';
import { commitChanges, type SiteContext } from '../context.ts';
import { ATTRIBUTE_NAME, DELAYED_NAME, type HomeRequest } from '../../site/chirp.ts';
import { SystemError } from './beneath.ts';
import { isSettable } from './settable.ts';

/** The requests that wrote the last events, `SESSION.N` each: an event and this are one transition. */
const TOLD = 'GryphusTold';
/** As many as a job has connections at once. */
const MOST_TOLD = 64;

/** A job's own attributes, beyond which it sets no new ones: the queue keeps them all. */
const MOST = 2000;

/** Attributes of a job that asks from within. */
export class JobAttributes {
  readonly #ctx: SiteContext;
  readonly #job: JobRecord;
  readonly #request: Pick<HomeRequest, 'session' | 'n' | 'again'>;

  constructor(ctx: SiteContext, job: JobRecord, request: Pick<HomeRequest, 'session' | 'n' | 'again'>) {
    this.#ctx = ctx;
    this.#job = job;
    this.#request = request;
  }

  /** The expression's text, as condor_shadow answers. */
  get(name: string): string {
    return this.#job.attrs.get(name) ?? 'UNDEFINED';
  }

  async set(name: string, text: string): Promise<void> {
    checkSet(name, text);
    const { attrs } = this.#job;
    if (!attrs.has(name) && Object.keys(attrs.own).length >= MOST) throw new SystemError('ENOSPC');
    await this.#change({ [name]: text });
  }

  /** Those that are not allowed are left out, as in HTCondor, where the job has long had its answer. */
  async setDelayed(words: readonly string[]): Promise<void> {
    const set: Record<string, string> = {};
    for (let i = 0; i + 1 < words.length; i += 2) {
      const [name = '', text = ''] = words.slice(i, i + 2);
      if (!DELAYED_NAME.test(name)) continue;
      try {
        checkSet(name, text);
        set[name] = text;
      } catch (thrown) {
        if (!(thrown instanceof SystemError)) throw thrown;
      }
    }
    if (Object.keys(set).length > 0) await this.#change(set);
  }

  /** Adds a condition to the job's requirements, by AgentRequirements. */
  async constrain(text: string): Promise<void> {
    checkSet('AgentRequirements', text);
    const before = this.#job.attrs.get('Requirements') ?? 'true';
    const Requirements = /\bAgentRequirements\b/i.test(before) ? before : `(${before}) && AgentRequirements`;
    await this.#change({ AgentRequirements: text, Requirements });
  }

  /** Writes an event 008 to the job's user log. */
  async log(text: string): Promise<void> {
    await this.#tell({}, { ulog: oneLine(text) });
  }

  /** Counts a checkpoint of a job that goes on: event 003. Seconds of processor time. */
  async checkpointed({ user, system }: { readonly user: number; readonly system: number }): Promise<void> {
    const count = (readNumber(this.#job.attrs, 'NumCkpts') ?? 0) + 1;
    const set = { NumCkpts: String(count), LastCkptTime: String(Math.floor(this.#ctx.now() / 1000)) };
    await this.#tell(set, { checkpointed: { user, system } });
  }

  /** Writes an event, once. */
  async #tell(set: AttrTexts, info: NonNullable<Change['info']>): Promise<void> {
    const { session, n, again } = this.#request;
    const told = (readString(this.#job.attrs, TOLD) ?? '').split(' ');
    if (again && told.includes(`${session}.${n}`)) return;
    const others = told.filter((one) => one !== '' && !one.startsWith(`${session}.`)).slice(1 - MOST_TOLD);
    await this.#change({ ...set, [TOLD]: quoted([...others, `${session}.${n}`].join(' ')) }, info);
  }

  async #change(set: AttrTexts, info?: Change['info']): Promise<void> {
    const { id, attempt } = this.#job;
    const [result] = await commitChanges(this.#ctx, [{ id, attempt, set, ...(info && { info }) }]);
    if (result?.ok !== true) throw new SystemError('EACCES');
  }
}

/** Throws a SystemError if a job may not give itself this attribute. */
export function checkSet(name: string, text: string): void {
  if (!ATTRIBUTE_NAME.test(name)) throw new SystemError('EINVAL');
  if (!isSettable(name)) throw new SystemError('EACCES');
  try {
    checkExpression(text, name);
  } catch (thrown) {
    if (thrown instanceof GryphusError) throw new SystemError('EINVAL');
    throw thrown;
  }
}
