import { backendOf } from '../backends/registry.ts';
import { type Asked, gramAdapter } from '../config/gram-adapter.ts';
import { POOL_SITE } from '../config/sites.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { readNumber, readString, type TextSource } from '../job/values.ts';
import type { Destination } from './site-choice.ts';
import type { Warning } from './types.ts';

/** The memory of a job that requests none. */
const STANDARD_MB = 128;

/** Whether the job requests this. */
const ASKS: Readonly<Record<Asked | 'request_disk', (job: TextSource) => boolean>> = {
  request_cpus: (job) => (readNumber(job, 'RequestCpus') ?? 1) > 1,
  request_memory: (job) => (readNumber(job, 'RequestMemory') ?? STANDARD_MB) !== STANDARD_MB,
  request_gpus: (job) => (readNumber(job, 'RequestGPUs') ?? 0) > 0,
  request_disk: (job) => job.get('RequestDisk') !== undefined,
  batch_runtime: (job) => readNumber(job, 'BatchRuntime') !== undefined,
  batch_queue: (job) => (readString(job, 'BatchQueue') ?? '') !== '',
  batch_project: (job) => (readString(job, 'BatchProject') ?? '') !== '',
};

/** What jobs request that their site ignores: the submit warns, because no later step does. */
export class UnsupportedRequests {
  readonly #found = new Map<string, Set<Asked>>();
  readonly #wordless = new Map<string, string>();
  /** Sites of jobs that want to keep their files when evicted. */
  readonly #keepers = new Set<string>();

  look({ name, batch, target }: Destination, own: AttrTexts, shared: AttrTexts): void {
    const job = { get: (attribute: string) => own[attribute] ?? shared[attribute] ?? undefined };
    if (batch !== undefined) this.#lookAt(name, batch, job);
    if (name !== POOL_SITE.name && readString(job, 'WhenToTransferOutput') === 'ON_EXIT_OR_EVICT')
      this.#keepers.add(name);
    if (target?.kind !== 'gram') return;
    const found = gramAdapter(target.service).ignores.filter((asked) => ASKS[asked](job));
    if (found.length === 0) return;
    const service = `${target.service} of ${target.host}`;
    this.#found.set(service, new Set([...(this.#found.get(service) ?? []), ...found]));
  }

  get warnings(): readonly Warning[] {
    const services = [...this.#found].map(([service, asked]) => ({
      message: `The GRAM service ${service} ignores ${[...asked].join(', ')}: the site's own settings apply.`,
    }));
    const lost = [...this.#keepers].map((name) => ({
      message: `when_to_transfer_output = ON_EXIT_OR_EVICT: ${
        name === '' ? 'only the pool brings' : `site ${name}, unlike the pool, does not bring`
      } home what a job leaves when it is evicted.`,
    }));
    return [...services, ...[...this.#wordless.values()].map((message) => ({ message })), ...lost];
  }

  #lookAt(site: string, batch: string, job: TextSource): void {
    const { command, instead } = backendOf(batch)?.lacks ?? {};
    if (command === undefined || this.#wordless.has(site) || !ASKS[command](job)) return;
    const advice = instead === undefined ? '' : ` If the site has it, ask with: batch_extra_submit_args = ${instead}`;
    this.#wordless.set(site, `${command} is not passed on to site ${site} (${batch}).${advice}`);
  }
}
