import { type Asked, gramAdapter } from '../config/gram-adapter.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { readNumber, readString, type TextSource } from '../job/values.ts';
import type { Destination } from './site-choice.ts';
import type { Warning } from './types.ts';

/** What a job has that asks for no memory. */
const STANDARD_MB = 128;

/** Whether the job asks for it. */
const ASKS: Readonly<Record<Asked, (job: TextSource) => boolean>> = {
  request_cpus: (job) => (readNumber(job, 'RequestCpus') ?? 1) > 1,
  request_memory: (job) => (readNumber(job, 'RequestMemory') ?? STANDARD_MB) !== STANDARD_MB,
  request_gpus: (job) => (readNumber(job, 'RequestGPUs') ?? 0) > 0,
  batch_runtime: (job) => readNumber(job, 'BatchRuntime') !== undefined,
  batch_queue: (job) => (readString(job, 'BatchQueue') ?? '') !== '',
  batch_project: (job) => (readString(job, 'BatchProject') ?? '') !== '',
};

/** What jobs ask of GRAM services whose adapters pass over it: said at the submit, for the service says nothing. */
export class Unheard {
  readonly #found = new Map<string, Set<Asked>>();

  look({ target }: Destination, own: AttrTexts, shared: AttrTexts): void {
    if (target?.kind !== 'gram') return;
    const job = { get: (name: string) => own[name] ?? shared[name] ?? undefined };
    const found = gramAdapter(target.service).ignores.filter((asked) => ASKS[asked](job));
    if (found.length === 0) return;
    const service = `${target.service} of ${target.host}`;
    this.#found.set(service, new Set([...(this.#found.get(service) ?? []), ...found]));
  }

  get warnings(): readonly Warning[] {
    return [...this.#found].map(([service, asked]) => ({
      message: `The GRAM service ${service} passes over ${[...asked].join(', ')}: what the site sets by itself holds.`,
    }));
  }
}
