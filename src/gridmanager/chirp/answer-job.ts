import { type AttemptKey, parseAttemptKey } from '../../job/ids.ts';
import { readBoolean, readString } from '../../job/values.ts';
import type { JobRecord } from '../../queue/api.ts';
import { CHIRP_ERROR, type HomeAnswer, type HomeRequest, WORKERS_OWN } from '../../site/chirp.ts';
import type { SiteContext } from '../context.ts';
import { Turns } from '../../util/turns.ts';
import { JobAttributes } from './attributes.ts';
import { codeOf, SystemError } from './beneath.ts';
import {
  answerRemote,
  isRemoteReading,
  openRemote,
  REMOTE_REFUSED,
  type RemoteHome,
} from '../remote-io/answer-remote.ts';
import type { OpenRead } from '../remote-io/contents.ts';
import type { DirectReads } from '../remote-io/direct-reads.ts';
import { FILE_OPS, onFiles } from './files.ts';
import { RequestJournal } from './journal.ts';
import type { Secrets } from './secrets.ts';

/** Chirp's errors for those of the system, as condor_starter translates them. */
const ERRORS: Readonly<Record<string, number>> = {
  EPERM: CHIRP_ERROR.notAuthorized,
  EACCES: CHIRP_ERROR.notAuthorized,
  ELOOP: CHIRP_ERROR.notAuthorized,
  EROFS: CHIRP_ERROR.notAuthorized,
  ENOENT: CHIRP_ERROR.doesNotExist,
  EEXIST: CHIRP_ERROR.alreadyExists,
  EFBIG: CHIRP_ERROR.tooBig,
  ENOSPC: CHIRP_ERROR.noSpace,
  EDQUOT: CHIRP_ERROR.noSpace,
  ENOMEM: CHIRP_ERROR.noMemory,
  EBADF: CHIRP_ERROR.badFd,
  EINVAL: CHIRP_ERROR.invalidRequest,
  ENAMETOOLONG: CHIRP_ERROR.invalidRequest,
  ENFILE: CHIRP_ERROR.tooManyOpen,
  EMFILE: CHIRP_ERROR.tooManyOpen,
  EBUSY: CHIRP_ERROR.busy,
  ETXTBSY: CHIRP_ERROR.busy,
  EAGAIN: CHIRP_ERROR.tryAgain,
  EISDIR: CHIRP_ERROR.isDirectory,
  ENOTDIR: CHIRP_ERROR.notDirectory,
  ENOTEMPTY: CHIRP_ERROR.notEmpty,
  EXDEV: CHIRP_ERROR.crossDevice,
};

/** Requests that change nothing: their answers, which can be long, are not remembered but found anew. */
const READING: ReadonlySet<HomeRequest['op']> = new Set<HomeRequest['op']>([
  'read',
  'stat',
  'lstat',
  'statfs',
  'access',
  'getdir',
  'getlongdir',
  'readlink',
  'get_job_attr',
  // Its answer is a secret, and is not kept.
  'remote_direct',
]);

/** The connections of jobs whose last answers are remembered. */
const MOST_SESSIONS = 1000;
/** How many requests are worked on at once, of one job and of all; the others wait. */
const AT_ONCE_OF_JOB = 4;
const AT_ONCE = 32;

/** Answers the requests of a site's running jobs (`want_io_proxy`). */
export class JobAnswers {
  readonly #ctx: SiteContext;
  readonly #secrets: Secrets;
  /** The last request of each connection, and its answer unless it can be found anew. */
  readonly #last = new Map<string, { readonly n: number; readonly answer: Promise<HomeAnswer> | undefined }>();
  /** The entries of `pool.remote_io`. */
  readonly #remote: () => readonly string[];
  readonly #direct: DirectReads | undefined;
  readonly #turns = new Turns(() => AT_ONCE);
  readonly #turnsOfJobs = new Map<AttemptKey, { readonly turns: Turns; open: number }>();

  constructor(ctx: SiteContext, secrets: Secrets, remote: () => readonly string[] = () => [], direct?: DirectReads) {
    this.#direct = direct;
    this.#ctx = ctx;
    this.#secrets = secrets;
    this.#remote = remote;
  }

  /** Never rejects. A request that comes again gets the answer that its first copy got, without being done again. */
  answer(key: AttemptKey, request: HomeRequest, bytes: Uint8Array): Promise<HomeAnswer> {
    const session = `${key} ${request.session}`;
    const last = this.#last.get(session);
    if (last?.n === request.n && last.answer) return last.answer;
    const answer = this.#inTurn(key, () => this.#answer(key, request, bytes)).catch((thrown: unknown) => ({
      result: request.op === 'remote_io' ? REMOTE_REFUSED : (ERRORS[codeOf(thrown) ?? ''] ?? CHIRP_ERROR.unknown),
    }));
    this.#last.delete(session);
    this.#last.set(session, { n: request.n, answer: isReading(request) ? undefined : answer });
    const [oldest] = this.#last.keys();
    if (this.#last.size > MOST_SESSIONS && oldest !== undefined) this.#last.delete(oldest);
    return answer;
  }

  /** One job's requests must not keep those of others waiting, nor hold all descriptors and memory. */
  async #inTurn<T>(key: AttemptKey, work: () => Promise<T>): Promise<T> {
    const mine = this.#turnsOfJobs.get(key) ?? { turns: new Turns(() => AT_ONCE_OF_JOB), open: 0 };
    this.#turnsOfJobs.set(key, mine);
    mine.open += 1;
    try {
      return await mine.turns.run(() => this.#turns.run(work));
    } finally {
      mine.open -= 1;
      if (mine.open === 0) this.#turnsOfJobs.delete(key);
    }
  }

  async #answer(key: AttemptKey, request: HomeRequest, bytes: Uint8Array): Promise<HomeAnswer> {
    const job = await this.#jobOf(key);
    const wants = (name: string) => readBoolean(job.attrs, name) === true;
    const asked = WORKERS_OWN.has(request.op)
      ? wants('WantCheckpoint')
      : request.op === 'remote_io' || request.op === 'remote_direct'
        ? wants('WantRemoteIO')
        : wants('WantIOProxy') || (request.op === 'set_job_attrs_delayed' && wants('WantDelayedUpdates'));
    if (!asked) throw new SystemError('EACCES');
    const journal = new RequestJournal(this.#ctx.spool.requestJournal(key));
    if (request.op === 'remote_io') return answerRemote(request, bytes, this.#remoteHome(key, job));
    if (request.op === 'remote_direct' && this.#direct) {
      const at = await this.#direct.give({
        open: (read) => this.#openRead(key, read),
        inTurn: (work) => this.#inTurn(key, work),
      });
      return { result: 0, bytes: Buffer.from(JSON.stringify(at)) };
    }
    if (request.op in FILE_OPS) {
      const root = readString(job.attrs, 'Iwd');
      if (root === undefined) throw new SystemError('EACCES');
      const { isClosed, isAnchor } = this.#secrets;
      const once = journal.once(request, request.op);
      const answer = onFiles(request, bytes, { bounds: { root, isClosed, isAnchor }, secrets: this.#secrets, ...once });
      if (answer) return answer;
    }
    const attributes = new JobAttributes(this.#ctx, job, request);
    return (
      (await ATTRIBUTE_OPS[request.op]?.(attributes, request.words, request.numbers)) ?? {
        result: CHIRP_ERROR.invalidRequest,
      }
    );
  }

  #remoteHome(key: AttemptKey, { attrs }: JobRecord): RemoteHome {
    return {
      iwd: readString(attrs, 'Iwd') ?? '/dev/null',
      others: this.#remote(),
      secrets: this.#secrets,
      journal: new RequestJournal(this.#ctx.spool.requestJournal(key)),
    };
  }

  /** Checks a read as if it had come the other way. */
  async #openRead(key: AttemptKey, request: HomeRequest): Promise<OpenRead> {
    const job = await this.#jobOf(key);
    if (readBoolean(job.attrs, 'WantRemoteIO') !== true) throw new SystemError('EACCES');
    return openRemote(request, this.#remoteHome(key, job));
  }

  /** Only the job's current attempt may ask. */
  async #jobOf(key: AttemptKey): Promise<JobRecord> {
    const { agent, manager, record, queue } = this.#ctx;
    const id = parseAttemptKey(key);
    const [job] = id?.agent === agent ? await queue.get([{ cluster: id.cluster, proc: id.proc }]) : [];
    if (job?.attempt !== id?.attempt || job?.manager !== manager || job.site !== record.name)
      throw new SystemError('EACCES');
    return job;
  }
}

function isReading({ op, words }: HomeRequest): boolean {
  return op === 'remote_io' ? isRemoteReading(words[0]) : READING.has(op);
}

/** The requests about attributes, and the job's log. */
const ATTRIBUTE_OPS: Partial<
  Readonly<
    Record<
      HomeRequest['op'],
      (attributes: JobAttributes, words: readonly string[], numbers: readonly number[]) => Promise<HomeAnswer>
    >
  >
> = {
  get_job_attr: async (attributes, [name = '']) => {
    const bytes = Buffer.from(attributes.get(name));
    return { result: bytes.length, bytes };
  },
  set_job_attr: async (attributes, [name = '', text = '']) => attributes.set(name, text).then(success),
  set_job_attrs_delayed: async (attributes, words) => attributes.setDelayed(words).then(success),
  constrain: async (attributes, [text = '']) => attributes.constrain(text).then(success),
  ulog: async (attributes, [text = '']) => attributes.log(text).then(success),
  checkpointed: async (attributes, _, [user = 0, system = 0]) =>
    attributes.checkpointed({ user: user / 1000, system: system / 1000 }).then(success),
  not_checkpointed: async (attributes, [why = '']) =>
    attributes.log(`The job was not checkpointed: ${why}`).then(success),
};

function success(): HomeAnswer {
  return { result: 0 };
}
