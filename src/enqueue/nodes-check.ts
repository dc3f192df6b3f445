import { backendOf } from '../backends/registry.ts';
import { gramAdapter } from '../config/gram-adapter.ts';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { nodesOf } from '../job/nodes.ts';
import type { Destination } from './site-choice.ts';

/** Refuses, with 'bad-input', jobs with several nodes that their site could never give. */
export function checkNodes(site: Destination, own: AttrTexts, shared: AttrTexts): void {
  const nodes = nodesOf({ get: (attribute) => own[attribute] ?? shared[attribute] ?? undefined });
  if (nodes === undefined || nodes.count === 1 || hasNodes(site)) return;
  const runs = site.target?.kind === 'gram' ? `${site.target.service} of ${site.target.host}` : (site.batch ?? '');
  const why = runs === 'fork' ? 'runs plain processes on one machine' : `(${runs}) gives a job one machine`;
  throw new GryphusError('bad-input', `Site ${site.name} ${why}, but the job has machine_count = ${nodes.count}.`, {
    suggestions: ['Name a site whose batch system has several nodes, as in `grid_resource = batch slurm cluster1`.'],
  });
}

/** Whether the site can give a job several nodes; a site that the broker has yet to choose may. */
function hasNodes({ batch, target }: Destination): boolean {
  if (target?.kind === 'gram') return gramAdapter(target.service).rslNames.hosts !== undefined;
  return batch === undefined || backendOf(batch)?.oneHost === undefined;
}
