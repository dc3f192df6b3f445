import { hostname } from 'node:os';
import { enqueue, type Enqueuer } from '../enqueue/enqueue.ts';
import { GryphusError } from '../errors.ts';
import type { DagStream } from '../queue/api.ts';
import { diskFiles, Inbox, ScriptRunner } from './local.ts';
import type {
  DagFiles,
  DagWorld,
  FoundSubmit,
  Happening,
  JobLogEvent,
  Journal,
  NodeSubmit,
  ScriptRun,
  SubmitOutcome,
} from './manager/world.ts';
import { nodeCluster, type NodeContext } from './node-cluster.ts';
import { nodesLogText } from './nodes-log.ts';
import { followDag, patiently } from './queue-reader.ts';
import { removeClusters } from './removal.ts';

/** Concurrent submits, so that their writes share the disk's round trips. */
const AT_ONCE = 32;
/** How often events before the journal's cursor are deleted, in milliseconds. */
const TRIM_MS = 5000;

export interface QueueWorldOptions {
  readonly enqueuer: Enqueuer;
  readonly dagmanId: number;
  readonly batchName: string;
  readonly journal: Journal;
  readonly nodes: NodeContext;
  /** The environment of the scripts. */
  readonly env: NodeJS.ProcessEnv;
}

/** The real world of a DAG manager: the queue, this machine's files, and processes for scripts. */
export class QueueWorld implements DagWorld {
  readonly files: DagFiles;
  readonly journal: Journal;
  readonly #options: QueueWorldOptions;
  readonly #dagStream: DagStream;
  readonly #inbox = new Inbox();
  readonly #scripts: ScriptRunner;
  readonly #stop = new AbortController();
  #following: Promise<void> | undefined;
  #failure: unknown;
  #shown: Promise<unknown> = Promise.resolve();
  #journalled: string | undefined;
  #trimmedAt = 0;

  constructor(options: QueueWorldOptions) {
    this.#options = options;
    this.#dagStream = options.enqueuer.queue.dag(options.dagmanId);
    this.files = diskFiles(options.nodes.root);
    this.journal = {
      read: () => options.journal.read(),
      append: (entry) => {
        options.journal.append(entry);
        this.#journalled = entry.cursor;
      },
    };
    this.#scripts = new ScriptRunner(options.nodes.root, options.env, (end) => this.#inbox.put(end));
  }

  now(): number {
    return Date.now();
  }

  /** Adds a happening from outside, such as a signal to the manager's process. */
  put(happening: Happening): void {
    this.#inbox.put(happening);
  }

  async next(until: number | undefined): Promise<readonly Happening[]> {
    this.#trim();
    const happenings = await this.#inbox.take(until);
    if (this.#failure !== undefined) throw this.#failure;
    return happenings;
  }

  resumeFrom(cursor: string | undefined): void {
    this.#following = followDag(
      this.#dagStream,
      cursor,
      (happenings) => {
        for (const happening of happenings) this.#inbox.put(happening);
      },
      this.#stop.signal,
    ).catch((thrown: unknown) => {
      this.#failure = thrown;
      this.#inbox.put({ is: 'stop' });
    });
  }

  /** Submits start in the order of the requests. */
  async submit(requests: readonly NodeSubmit[]): Promise<readonly SubmitOutcome[]> {
    const outcomes: SubmitOutcome[] = [];
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let i = next++; i < requests.length; i = next++) {
        const request = requests[i];
        if (request !== undefined) outcomes[i] = await this.#submit(request);
      }
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, requests.length) }, worker));
    return outcomes;
  }

  async findSubmitted(): Promise<readonly FoundSubmit[]> {
    const submits = await patiently(() => this.#dagStream.submits());
    return submits.map(({ name, cluster, procs }) => ({ ...readName(name), cluster, procs }));
  }

  startScript(run: ScriptRun): void {
    this.#scripts.start(run);
  }

  killScripts(): void {
    this.#scripts.killAll();
  }

  removeCluster(cluster: number, reason: string): Promise<void> {
    return patiently(() => removeClusters(this.#options.enqueuer.queue, [cluster], reason));
  }

  async removeAll(reason: string, keep: readonly string[]): Promise<void> {
    const submits = await this.findSubmitted();
    const clusters = submits.filter(({ node }) => !keep.includes(node)).map(({ cluster }) => cluster);
    await patiently(() => removeClusters(this.#options.enqueuer.queue, clusters, reason));
  }

  show(attributes: Readonly<Record<string, string>>): void {
    const { enqueuer, dagmanId } = this.#options;
    const show = (): Promise<unknown> =>
      enqueuer.queue.transition({ id: { cluster: dagmanId, proc: 0 }, set: attributes });
    // A lost update does no harm: the attributes are only for display, and the next update repeats them all.
    this.#shown = this.#shown.then(show).then(undefined, () => undefined);
  }

  logEvent(event: JobLogEvent): string {
    return nodesLogText(event, hostname(), this.#options.batchName);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#following;
    await this.#shown;
  }

  /** If the answer to a submit is lost, its name tells whether it succeeded. */
  async #submit(request: NodeSubmit): Promise<SubmitOutcome> {
    const made = nodeCluster(request, this.#options.nodes);
    if ('failed' in made) return made;
    const name = nameOf(request);
    for (;;) {
      try {
        const dag = { manager: this.#options.dagmanId, name };
        const { cluster, total } = await enqueue(this.#options.enqueuer, made.cluster, made.attributes, dag);
        return { cluster, procs: total };
      } catch (thrown) {
        if (!(thrown instanceof GryphusError)) throw thrown;
        if (thrown.code !== 'queue-unavailable' && thrown.code !== 'conflict') {
          return { failed: thrown.message, again: thrown.retry === 'later' };
        }
        const had = (await patiently(() => this.#dagStream.submits())).find((submit) => submit.name === name);
        if (had !== undefined) return { cluster: had.cluster, procs: had.procs };
        if (thrown.code === 'conflict') return { failed: thrown.message, again: true };
      }
    }
  }

  #trim(): void {
    const cursor = this.#journalled;
    if (cursor === undefined || Date.now() < this.#trimmedAt + TRIM_MS) return;
    this.#trimmedAt = Date.now();
    // Anything not deleted now is deleted the next time.
    this.#dagStream.trim(cursor).catch(() => undefined);
  }
}

function nameOf({ node, retry }: NodeSubmit): string {
  return `${retry} ${node}`;
}

function readName(name: string): { readonly node: string; readonly retry: number } {
  const blank = name.indexOf(' ');
  return { node: name.slice(blank + 1), retry: Number(name.slice(0, blank)) };
}
