import type * as z from 'zod';
import type { DagPicture, DagStatus, Gryphus } from '../index.ts';
import { rowOf, ROW_ATTRIBUTES } from './row.ts';
import { LIFE } from '../job/life.ts';
import { nameOf } from './job-table.ts';
import type { DAG, PICTURE, RUNS } from './schemas.ts';
import type { Web } from './web.ts';

/** How long a DAG's journal is not read again; milliseconds. */
const FRESH_MS = 700;
/** Bars that are drawn. */
const MOST_RUNS = 2000;

export function dagOf({
  cluster,
  files,
  directory,
  batchName,
  manager,
  submitted,
  exitCode,
  continuesFrom,
  rescue,
  progress,
}: DagStatus): z.infer<typeof DAG> {
  return {
    cluster,
    files: [...files],
    directory,
    batchName,
    manager,
    submitted,
    ...(exitCode === undefined ? {} : { exitCode }),
    continuesFrom,
    rescue,
    ...(progress === undefined
      ? {}
      : {
          progress: {
            ...progress,
            criticalPath: { ...progress.criticalPath, nodes: [...progress.criticalPath.nodes] },
            failures: [...progress.failures],
            retries: progress.retries && { ...progress.retries, nodes: [...progress.retries.nodes] },
          },
        }),
  };
}

export async function dagsOf(web: Web): Promise<z.infer<typeof DAG>[]> {
  const statuses = await web.recent.get('dags', FRESH_MS, async () => (await web.gryphus.dags()).status());
  return statuses.map(dagOf);
}

export async function oneDag(web: Web, name: string): Promise<z.infer<typeof DAG> | undefined> {
  const [found] = await web.recent.get(`dag ${name}`, FRESH_MS, async () => (await web.gryphus.dags()).status(name));
  return found && dagOf(found);
}

export async function pictureOf(
  web: Web,
  name: string,
  wish: { readonly around?: string | undefined; readonly steps: number },
): Promise<z.infer<typeof PICTURE>> {
  const { around, steps } = wish;
  const picture = await web.recent.get(`picture ${name} ${steps} ${around ?? ''}`, FRESH_MS, async () =>
    (await web.gryphus.dags()).picture(name, { steps, ...(around === undefined ? {} : { around }) }),
  );
  const { boxes, lines, grouped, size, left }: DagPicture = picture ?? {
    boxes: [],
    lines: [],
    grouped: false,
    size: 0,
    left: 0,
  };
  return {
    boxes: boxes.map((box) => ({ ...box, nodes: [...box.nodes], states: { ...box.states } })),
    lines: [...lines],
    grouped,
    size,
    left,
  };
}

/** When the nodes' jobs ran, those that started last first. */
export async function runsOf(gryphus: Gryphus, cluster: number): Promise<z.infer<typeof RUNS>> {
  const constraint = `DAGManJobId =?= ${cluster}`;
  const attributes = [...ROW_ATTRIBUTES, 'JobStartDate', 'CompletionDate'];
  const runs: z.infer<typeof RUNS> = [];
  for await (const view of gryphus.jobs({ constraint, attributes, limit: MOST_RUNS })) {
    const row = rowOf(view);
    const started = Number(view.ad['JobCurrentStartDate'] ?? view.ad['JobStartDate'] ?? Number.NaN);
    const { shows } = LIFE[row.state];
    const over = shows === 'completed' || shows === 'removed';
    runs.push({
      node: row.node,
      job: nameOf(row.id),
      submitted: row.submitted,
      shows,
      ...(started > 0 ? { started } : {}),
      ...(over ? { ended: row.since } : {}),
    });
  }
  return runs.sort((a, b) => (a.started ?? Infinity) - (b.started ?? Infinity) || a.submitted - b.submitted);
}
