import { existsSync } from 'node:fs';
import { GryphusError } from '../../errors.ts';
import type { AttemptKey } from '../../job/ids.ts';
import type { FetchOutcome, FetchRequest } from '../../site/contract.ts';
import type { Attempt } from './attempts.ts';
import type { CentralManager } from './central-manager.ts';
import type { CentralManagerWorkers } from './worker-connections.ts';
import { gathered, type NodeOutcome, nodeRequestOf } from './gangs/results.ts';
import { nodesOf } from './gangs/nodes.ts';
import { bringHome } from './shadow.ts';
import { Turns } from '../../util/turns.ts';

/** How long a fetch waits for an absent worker before it answers "later", in milliseconds. */
const RETURN_MS = 20_000;
/**
 * If results take longer than this, the client, which asks for many attempts at once, is told "later" while the
 * transfer continues. Milliseconds.
 */
const PATIENCE_MS = 1_000;

/** A transfer stops if nobody has asked for it for this long, in milliseconds. */
const UNASKED_MS = 60_000;
/** After this many results that differ from what the worker announced, the results are refused. */
const MOST_LIES = 3;

interface Coming {
  readonly outcome: Promise<FetchOutcome>;
  /** When it was last asked for, by the monotonic clock. */
  askedAt: number;
  /** How many are waiting for it now. If it ends when nobody is, the next who asks gets it. */
  waiting: number;
  over: boolean;
}

/** The attempts, and which of their workers are dead. */
type Attempts = Pick<CentralManager, 'get' | 'whenSaved'> & {
  readonly deadWorkers: Pick<CentralManager['deadWorkers'], 'isOrphan' | 'bereave'>;
  readonly collector: Pick<CentralManager['collector'], 'get'>;
  readonly sharing: { readonly rules: Pick<CentralManager['sharing']['rules'], 'downloads'> };
};

/** Results that are being brought home from workers; repeated requests share one transfer. */
export class Fetching {
  readonly #centralManager: Attempts;
  readonly #workers: Pick<CentralManagerWorkers, 'whenBack' | 'send' | 'staging'>;
  readonly #coming = new Map<AttemptKey, Coming>();
  /** How often an attempt's worker delivered something other than it announced. */
  readonly #lies = new Map<AttemptKey, number>();

  /** MAX_CONCURRENT_DOWNLOADS. */
  readonly #turns = new Turns(() => this.#centralManager.sharing.rules.downloads);

  constructor(centralManager: Attempts, workers: Pick<CentralManagerWorkers, 'whenBack' | 'send' | 'staging'>) {
    this.#centralManager = centralManager;
    this.#workers = workers;
  }

  async fetch(request: FetchRequest): Promise<FetchOutcome> {
    const attempt = this.#centralManager.get(request.key);
    if (!attempt) {
      this.#lies.delete(request.key);
      const message = `The pool has no files of ${request.key}.`;
      return { ok: false, refusal: { kind: 'gone', code: 'unknown-key', message }, missing: [] };
    }
    const how = attempt.ending?.how;
    // It was never placed in a sandbox, or its worker died: there is nothing to fetch.
    if (how?.kind === 'by-site' && how.cause === 'node-fail') return { ok: true, files: [], lost: how };
    const coming = (await this.#known(request.key)) ?? this.#begin(attempt, request);
    coming.askedAt = performance.now();
    return this.#soon(request.key, coming);
  }

  /** What is on its way, or has come; not if its files were deleted since, as a restarted client may do. */
  async #known(key: AttemptKey): Promise<Coming | undefined> {
    const coming = this.#coming.get(key);
    if (!coming?.over) return coming;
    const come = await coming.outcome.catch(() => undefined);
    if (come?.ok !== true || come.files.every(({ path }) => existsSync(path))) return coming;
    this.#coming.delete(key);
    return undefined;
  }

  #begin(attempt: Attempt, request: FetchRequest): Coming {
    const { key } = request;
    const wanted = () =>
      this.#centralManager.get(key) === attempt &&
      performance.now() - (this.#coming.get(key)?.askedAt ?? 0) < UNASKED_MS;
    const outcome = this.#bring(attempt, request, wanted);
    const coming: Coming = { outcome, askedAt: performance.now(), waiting: 0, over: false };
    this.#coming.set(key, coming);
    const ended = () => {
      coming.over = true;
      // The client may have disconnected.
      if (coming.waiting === 0) setTimeout(() => this.#drop(key, coming), UNASKED_MS).unref();
    };
    outcome.then(ended, ended);
    return coming;
  }

  #drop(key: AttemptKey, coming: Coming): void {
    if (this.#coming.get(key) === coming) this.#coming.delete(key);
  }

  async #bring(attempt: Attempt, request: FetchRequest, wanted: () => boolean): Promise<FetchOutcome> {
    if (attempt.nodes) return this.#bringNodes(attempt, request, wanted);
    const { deadWorkers } = this.#centralManager;
    const patience = deadWorkers.isOrphan(attempt) ? 0 : RETURN_MS;
    const worker = await this.#workers.whenBack(attempt.worker, patience);
    const connect = this.#workers.staging(attempt.worker, attempt.key);
    const outcome = await this.#turns
      .run(() => bringHome({ attempt, request, worker, wanted, connect }))
      .catch((thrown: unknown) => this.#belied(attempt, thrown));
    if (outcome.ok) this.#lies.delete(attempt.key);
    if (outcome.ok || outcome.refusal.kind !== 'later' || !deadWorkers.isOrphan(attempt)) return outcome;
    return this.#lost(attempt);
  }

  /** The job runs again elsewhere. */
  async #lost(attempt: Attempt, why?: string): Promise<FetchOutcome> {
    const lost = this.#centralManager.deadWorkers.bereave(attempt, why);
    await new Promise<void>((saved) => this.#centralManager.whenSaved(saved));
    return { ok: true, files: [], lost };
  }

  /** The results of all nodes, each in a directory of its own: those of lower numbers take precedence. */
  async #bringNodes(part: Attempt, request: FetchRequest, wanted: () => boolean): Promise<FetchOutcome> {
    if (part.ending?.how.kind === 'by-site' && AGAIN.has(part.ending.how.cause)) return { ok: true, files: [] };
    const outcomes: NodeOutcome[] = [];
    for (const node of nodesOf(part)) {
      const asked = nodeRequestOf(request, node);
      if (asked) outcomes.push({ node, outcome: await this.#bring(node, asked, wanted) });
    }
    return gathered(outcomes, request);
  }

  /**
   * The results may have changed since they were announced, so they are requested again; after MOST_LIES times they are
   * refused, and those of a partner's pool given up: its gateway learns that it lies, and the job runs elsewhere.
   */
  #belied(attempt: Attempt, thrown: unknown): FetchOutcome | Promise<FetchOutcome> {
    const { key, worker = '' } = attempt;
    if (!(thrown instanceof GryphusError) || thrown.code !== 'protocol-error') throw thrown;
    const lies = (this.#lies.get(key) ?? 0) + 1;
    this.#lies.set(key, lies);
    const { message } = thrown;
    if (lies < MOST_LIES) return { ok: false, refusal: { kind: 'later', code: 'site-busy', message }, missing: [] };
    this.#lies.delete(key);
    if (this.#centralManager.collector.get(worker)?.texts['HasFalseResults'] === 'true') {
      this.#workers.send(worker, { t: 'disbelieved', key, message });
      return this.#lost(attempt, `its results were not what was announced. ${message}`);
    }
    return { ok: false, refusal: { kind: 'never', code: 'site-refused', message }, missing: [] };
  }

  #soon(key: AttemptKey, coming: Coming): Promise<FetchOutcome> {
    coming.waiting += 1;
    return new Promise((resolve, reject) => {
      let late = false;
      const timer = setTimeout(() => {
        late = true;
        coming.waiting -= 1;
        resolve(LATER);
      }, PATIENCE_MS);
      coming.outcome.then(resolve, reject).finally(() => {
        clearTimeout(timer);
        if (!late) this.#drop(key, coming);
      });
    });
  }
}

/** Parallel jobs that end so run again from their start: what they left is of no use. */
const AGAIN: ReadonlySet<string> = new Set(['preempted', 'node-fail', 'vanished', 'requeued']);

const LATER: FetchOutcome = {
  ok: false,
  refusal: { kind: 'later', code: 'arriving', message: 'The results are on their way.' },
  missing: [],
};
