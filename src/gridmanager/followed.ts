import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { JobRecord } from '../queue/api.ts';
import type { Chunk, Follow } from '../site/contract.ts';
import type { SiteContext } from './context.ts';
import { jobFiles } from './files.ts';

/** Streams that one poll asks for at most; the others come with the next. */
const AT_ONCE = 500;

/** Running attempts whose output comes home while they run, and how much of it is here. */
export class Followed {
  readonly #lengths = new Map<AttemptKey, { stdout: number; stderr: number }>();

  /** After a start: what runs, and what of its streams is on disk already. */
  async recover(ctx: SiteContext, jobs: ReadonlyMap<AttemptKey, JobRecord>): Promise<void> {
    this.#lengths.clear();
    for (const [key, job] of jobs) {
      if (job.state === 'committed' || job.state === 'unknown') continue;
      this.add(key, job);
      const lengths = this.#lengths.get(key);
      if (!lengths) continue;
      lengths.stdout = await ctx.spool.length(key, 'stdout');
      lengths.stderr = await ctx.spool.length(key, 'stderr');
    }
  }

  /** A job whose streams nobody wants is not followed. */
  add(key: AttemptKey, job: JobRecord): void {
    if (this.#lengths.has(key)) return;
    const files = jobFiles(job.attrs, true);
    if (files.stdout === undefined && files.stderr === undefined) return;
    this.#lengths.set(key, { stdout: 0, stderr: 0 });
  }

  drop(key: AttemptKey): void {
    this.#lengths.delete(key);
  }

  /** The next to ask for; who was asked goes to the end of the row. */
  next(): Follow[] {
    const asked: Follow[] = [];
    for (const [key, lengths] of this.#lengths) {
      if (asked.length >= AT_ONCE) break;
      asked.push({ key, ...lengths });
    }
    for (const { key } of asked) {
      const lengths = this.#lengths.get(key);
      this.#lengths.delete(key);
      if (lengths) this.#lengths.set(key, lengths);
    }
    return asked;
  }

  get size(): number {
    return this.#lengths.size;
  }

  /** Writes what came of attempts that are followed at this site: it has nothing to say of others. */
  async store(ctx: SiteContext, chunks: readonly Chunk[]): Promise<{ readonly bytes: number }> {
    let bytes = 0;
    for (const { key, stream, offset, data } of chunks) {
      if (!this.#lengths.has(key)) continue;
      const length = await ctx.spool.write(key, stream, offset, data).catch((thrown: unknown) => {
        if (!(thrown instanceof GryphusError)) throw thrown;
        // No room here: the stream comes home at the end, or the job is held then.
        this.drop(key);
      });
      if (length === undefined) continue;
      const lengths = this.#lengths.get(key);
      if (lengths) lengths[stream] = length;
      bytes += data.length;
    }
    return { bytes };
  }
}
