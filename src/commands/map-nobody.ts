import { hostname } from 'node:os';
import type { Gryphus } from '../index.ts';

/** How long to wait for a first result before checking whether any worker suits the tasks. */
export const NOBODY_MS = 10_000;

/** Says so if no worker that the pool has now can take the tasks of a map. */
export async function sayIfNobody(
  gryphus: Gryphus,
  { requirements, cpus = 1 }: { readonly requirements?: string | undefined; readonly cpus?: number | undefined },
  anywhere: boolean,
): Promise<void> {
  const ads = await gryphus.slots(requirements?.replaceAll(/\bTARGET\./gi, '')).catch(() => undefined);
  if (ads === undefined) return;
  const able = ads.filter((ad) => Number(ad['TotalCpus'] ?? 0) >= cpus);
  const sharing = able.filter((ad) => ad['FileSystemDomain'] === JSON.stringify(hostname()));
  if ((anywhere ? able : sharing).length > 0) return;
  const why =
    able.length > 0
      ? 'no worker that the pool has now shares this directory, so the tasks wait.\n  → --transferfile and --return carry files to the others and back; --anywhere is for tasks without files.\n'
      : 'no worker that the pool has now seems to take these tasks, so they wait.\n  → See `gryphus status --pool`.\n';
  process.stderr.write(`gryphus: ${why}`);
}
