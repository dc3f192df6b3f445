import { type Asked, gramAdapter } from '../config/gram-adapter.ts';
import { POOL_SITE } from '../config/sites.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { readNumber, readString, type TextSource } from '../job/values.ts';
import type { Destination } from './site-choice.ts';
import type { Warning } from './types.ts';

/** What a job has that asks for no memory. */
const STANDARD_MB = 128;

/** Whether the job asks for it. */
const ASKS: Readonly<Record<Asked | 'request_disk', (job: TextSource) => boolean>> = {
  request_cpus: (job) => (readNumber(job, 'RequestCpus') ?? 1) > 1,
  request_memory: (job) => (readNumber(job, 'RequestMemory') ?? STANDARD_MB) !== STANDARD_MB,
  request_gpus: (job) => (readNumber(job, 'RequestGPUs') ?? 0) > 0,
  request_disk: (job) => job.get('RequestDisk') !== undefined,
  batch_runtime: (job) => readNumber(job, 'BatchRuntime') !== undefined,
  batch_queue: (job) => (readString(job, 'BatchQueue') ?? '') !== '',
  batch_project: (job) => (readString(job, 'BatchProject') ?? '') !== '',
};

/** What a backend has no words for that are good at every site, and where some site has one, how to say it. */
const WORDLESS: Readonly<Record<string, { readonly asked: 'request_disk' | 'batch_queue'; readonly say?: string }>> = {
  slurm: { asked: 'request_disk', say: '--tmp=10G' },
  pbs: { asked: 'request_disk', say: '-l scratch=10gb' },
  torque: { asked: 'request_disk', say: '-l file=10gb' },
  sge: { asked: 'request_disk', say: '-l scratch_free=10G' },
  condor: { asked: 'batch_queue' },
};

/** What jobs ask of a site that passes over it: said at the submit, for nobody else says it. */
export class Unheard {
  readonly #found = new Map<string, Set<Asked>>();
  readonly #wordless = new Map<string, string>();
  /** Sites of jobs that want to keep what they leave at an eviction. */
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
      message: `The GRAM service ${service} passes over ${[...asked].join(', ')}: what the site sets by itself holds.`,
    }));
    const lost = [...this.#keepers].map((name) => ({
      message: `when_to_transfer_output = ON_EXIT_OR_EVICT: ${
        name === '' ? 'only the pool brings' : `site ${name}, unlike the pool, does not bring`
      } home what a job leaves when it is evicted.`,
    }));
    return [...services, ...[...this.#wordless.values()].map((message) => ({ message })), ...lost];
  }

  #lookAt(site: string, batch: string, job: TextSource): void {
    const { asked, say } = WORDLESS[batch] ?? {};
    if (asked === undefined || this.#wordless.has(site) || !ASKS[asked](job)) return;
    const instead =
      say === undefined ? '' : ` Where the site counts it, ask in its words: batch_extra_submit_args = ${say}`;
    this.#wordless.set(site, `Site ${site} (${batch}) is not asked for ${asked}.${instead}`);
  }
}
