import type { AttrTexts } from '../job/attrs.ts';
import { readNumber, type TextSource } from '../job/values.ts';
import { CATALOGUE, type Cluster, type JobPlace, type SubmitCommand, spellings } from '../submit/api.ts';
import { isParallel } from '../job/parallel-node.ts';
import { UNIVERSE } from '../job/universe.ts';
import { POOL_SITE } from '../config/sites.ts';
import type { Destination } from './site-choice.ts';
import type { Warning } from './types.ts';

/** In the warning's words. */
const WHERE: Readonly<Record<JobPlace, string>> = {
  pool: 'the pool',
  batch: 'a batch system',
  gram: 'a GRAM service',
  local: 'the local or scheduler universe',
};

interface Written {
  readonly command: SubmitCommand;
  readonly line: number;
}

/** Warns, once each, of commands that have no effect in the place where a job of the cluster goes. */
export class OutOfPlace {
  readonly #written: readonly Written[];
  readonly #found = new Map<string, Warning>();

  constructor(cluster: Pick<Cluster, 'lineOf'>) {
    this.#written = CATALOGUE.flatMap((command): Written[] => {
      const line = command.at === undefined ? undefined : cluster.lineOf(spellings(command));
      return line === undefined ? [] : [{ command, line }];
    });
  }

  look(site: Destination, own: AttrTexts, shared: AttrTexts): void {
    if (this.#written.length === 0) return;
    const job = { get: (attribute: string) => own[attribute] ?? shared[attribute] ?? undefined };
    const place = placeOf(site, job);
    for (const { command, line } of this.#written) {
      const { name, at, attribute = '', idle, says = '' } = command;
      const key = `${name} ${place}`;
      if (at?.includes(place) !== false || this.#found.has(key) || brokered(site, name)) continue;
      if (name === 'ranks_per_node' && isParallel(job)) continue;
      const value = job.get(attribute);
      if (value === undefined || idle.test(value)) continue;
      const message = `${name} has no effect for a job of ${WHERE[place]}. ${says}`;
      this.#found.set(key, { message, ...(line > 0 ? { line } : {}) });
    }
  }

  get warnings(): readonly Warning[] {
    return [...this.#found.values()];
  }
}

/** The broker matches a job without grid_resource with sites, as the pool does with machines. */
function brokered({ name }: Destination, command: string): boolean {
  return name === '' && (command === 'requirements' || command === 'rank');
}

function placeOf({ name, target }: Destination, job: TextSource): JobPlace {
  const universe = readNumber(job, 'JobUniverse');
  if (universe === UNIVERSE.local || universe === UNIVERSE.scheduler) return 'local';
  if (name === POOL_SITE.name) return 'pool';
  return target?.kind === 'gram' ? 'gram' : 'batch';
}
