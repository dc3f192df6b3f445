import { backendOf } from '../backends/registry.ts';
import { gramAdapter } from '../config/gram-adapter.ts';
import { POOL_SITE } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { nodesOf } from '../job/nodes.ts';
import { FIRST_NODE, isParallel, namesNode } from '../job/parallel-node.ts';
import { readBoolean, readNumber, readString } from '../job/values.ts';
import type { Cluster } from '../submit/api.ts';
import type { Destination } from './site-choice.ts';

/** What the ad of a parallel job's cluster says of how many jobs start together: all that its submit makes. */
export function togetherOf({ clusterAd, total, late }: Pick<Cluster, 'clusterAd' | 'total' | 'late'>): AttrTexts {
  if (!isParallel({ get: (name) => clusterAd[name] ?? undefined })) return {};
  if (late)
    throw new GryphusError('bad-input', 'The jobs of a parallel cluster start together, and cannot be made later.', {
      suggestions: ['Leave out max_materialize and max_idle, or name a site: `grid_resource = batch slurm cluster1`.'],
    });
  return { TotalSubmitProcs: String(total) };
}

/** Looks at the jobs of a parallel cluster, in their order. */
export class TogetherCheck {
  #next = 0;
  #saves: string | undefined | null = null;

  /**
   * A job's own ad with the number of its first node: they are numbered through. Refuses, with 'bad-input', jobs that
   * would not go on together after a checkpoint: node 0's exit counts for all.
   */
  look(own: AttrTexts, shared: AttrTexts): AttrTexts {
    const ad = { get: (attribute: string) => own[attribute] ?? shared[attribute] ?? undefined };
    if (!isParallel(ad)) return own;
    const saves = ad.get('SuccessCheckpointExitCode');
    if (this.#saves === null) this.#saves = saves;
    else if (this.#saves !== saves)
      throw new GryphusError('bad-input', 'checkpoint_exit_code must be the same for all jobs of a parallel cluster.', {
        suggestions: ['Write it once, before the first queue statement.'],
      });
    const first = this.#next;
    this.#next += readNumber(ad, 'MaxHosts') ?? 1;
    return first > 0 ? { ...own, [FIRST_NODE]: String(first) } : own;
  }
}

/** Refuses, with 'bad-input', jobs with several nodes that their site could never give. */
export function checkNodes(site: Destination, own: AttrTexts, shared: AttrTexts): void {
  const nodes = nodesOf({ get: (attribute) => own[attribute] ?? shared[attribute] ?? undefined });
  if (site.name === POOL_SITE.name) checkInPool(own, shared);
  if (nodes === undefined || nodes.count === 1 || hasNodes(site)) return;
  const runs = site.target?.kind === 'gram' ? `${site.target.service} of ${site.target.host}` : (site.batch ?? '');
  const why = runs === 'fork' ? 'runs plain processes on one machine' : `(${runs}) gives a job one machine`;
  throw new GryphusError('bad-input', `Site ${site.name} ${why}, but the job has machine_count = ${nodes.count}.`, {
    suggestions: ['Name a site whose batch system has several nodes, as in `grid_resource = batch slurm cluster1`.'],
  });
}

/** What a parallel job cannot ask of the pool. */
function checkInPool(own: AttrTexts, shared: AttrTexts): void {
  const ad = { get: (attribute: string) => own[attribute] ?? shared[attribute] ?? undefined };
  if (!isParallel(ad)) return;
  if (readBoolean(ad, 'WholeNodes') === true)
    throw new GryphusError('bad-input', 'In the pool, a parallel job cannot have whole machines.', {
      suggestions: ["Leave out whole_nodes, and request a machine's cores: request_cpus = 32."],
    });
  for (const [command, attribute] of [
    ['input', 'In'],
    ['executable', 'Cmd'],
  ] as const)
    if (namesNode(readString(ad, attribute) ?? ''))
      throw new GryphusError('bad-input', `$(Node) in ${command} is not supported in the pool.`, {
        suggestions: ['Write it in transfer_input_files, or let the program choose by its variable _CONDOR_PROCNO.'],
      });
}

/** Whether the site can give a job several nodes; a site that the broker has yet to choose may. */
function hasNodes({ batch, target }: Destination): boolean {
  if (target?.kind === 'gram') return gramAdapter(target.service).rslNames.hosts !== undefined;
  return batch === undefined || backendOf(batch)?.oneHost === undefined;
}
