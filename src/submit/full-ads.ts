import type { AttrTexts } from '../job/attrs.ts';
import type { Cluster, ProcsRequest } from './cluster.ts';

/**
 * The whole ad of each job, combining the cluster's attributes and its own, as a dry run prints it; made as they are
 * read.
 */
export function* fullAds(cluster: Cluster, request?: ProcsRequest): Generator<Record<string, string>> {
  for (const { attrs } of cluster.procs(request)) yield merge(cluster.clusterAd, attrs);
}

function merge(...layers: readonly AttrTexts[]): Record<string, string> {
  const names = new Map<string, string>();
  const values = new Map<string, string>();
  for (const layer of layers) {
    for (const [name, text] of Object.entries(layer)) {
      const key = name.toLowerCase();
      if (!names.has(key)) names.set(key, name);
      if (text === null) values.delete(key);
      else values.set(key, text);
    }
  }
  return Object.fromEntries([...values].map(([key, text]) => [names.get(key) ?? key, text]));
}
