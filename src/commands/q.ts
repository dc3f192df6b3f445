import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Flags } from '@oclif/core';

import type { ClusterView, Gryphus, JobView, Selection, Totals } from '../index.ts';
import { NO_JOBS, type Sums, sumOf } from '../job/totals.ts';
import { adFlags } from './ad-flags.ts';
import { GryphusCommand, Out, interruptible, prose, terminalWidth, word } from './command.ts';
import { CONDOR_Q } from './other-words.ts';
import { printAds } from './print-ads.ts';
import { sayMissing } from './missing.ts';
import { constraintFlag, oneOf, selections } from './select.ts';
import { longDate } from './show/dates.ts';
import { batchLines } from './show/q-batch.ts';
import { DAG_ATTRIBUTES, DAG_HEAD, dagLines } from './show/q-dag.ts';
import { type View, viewAttributes, viewHead, viewRows, VIEWS } from './show/q-rows.ts';
import { siteNotes } from './show/sites.ts';
import { countJobs, totalsLines } from './show/totals.ts';
import { cut, type Width } from './show/width.ts';

export class Q extends GryphusCommand {
  static override strict = false;
  static override summary = 'Show the jobs in the queue.';
  static override description =
    prose(`Without options, one line for each batch of your jobs. ST is I idle, R running, H held, C completed, X removed,
> bringing results home, S suspended, and ? where the site does not answer.`);
  static override examples = [
    '<%= config.bin %> q',
    '<%= config.bin %> q 12 13.4 --nobatch',
    '<%= config.bin %> q --hold',
    `<%= config.bin %> q --constraint 'JobPrio > 5 && RequestCpus == 1' --json`,
    '<%= config.bin %> q -af:jh JobStatus Cmd Args',
    '<%= config.bin %> q --watch',
  ];
  static override args = { jobs: word('clusters (12), jobs (12.3) or users') };
  static condor = CONDOR_Q;
  static override flags = {
    constraint: constraintFlag,
    allusers: Flags.boolean({ aliases: ['all'], summary: "Everybody's jobs." }),
    nobatch: Flags.boolean({ summary: 'One line for each job.' }),
    batch: Flags.boolean({ summary: 'One line for each batch (the default).', hidden: true }),
    hold: Flags.boolean({ aliases: ['held'], summary: 'Held jobs, and why.' }),
    run: Flags.boolean({ summary: 'Running jobs, and where.' }),
    idle: Flags.boolean({ summary: 'Idle jobs, and what they ask for.' }),
    grid: Flags.boolean({ summary: 'What the sites report about the jobs.' }),
    dag: Flags.boolean({ summary: 'One line for each job, nodes below the manager of their DAG.' }),
    analyze: Flags.boolean({ summary: 'Why jobs do not run, as `why` explains.', hidden: true }),
    totals: Flags.boolean({ aliases: ['tot'], summary: 'Only the totals.' }),
    ...adFlags,
    limit: Flags.integer({ helpValue: '<n>', min: 0, summary: 'Show at most this many jobs.' }),
    wide: Flags.boolean({ summary: "Do not truncate lines to the terminal's width." }),
    watch: Flags.boolean({ summary: 'Redraw at every change, until Ctrl-C.' }),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Q);
    const words = argv as string[];
    if (flags.analyze) return this.#analyze(words, flags);
    const named = { words, constraint: flags.constraint, all: flags.allusers };
    const mine = words.length === 0 && !flags.allusers;
    await this.withGryphus(flags, async (gryphus) => {
      const { owner } = gryphus;
      const selected = selections(named).map((one) => (mine ? { ...one, owner } : one));
      if (flags.long || flags.json || flags.jsonl || flags.xml || flags.af || flags.format) {
        await printAds(listed(gryphus, selected, flags), flags);
        return sayMissing(gryphus, words, 'queue');
      }
      if (flags['print-format'] !== undefined) {
        const jobs = listed(gryphus, selected, flags);
        process.stdout.write(await this.#formatted(gryphus, jobs, flags['print-format'], flags));
        return sayMissing(gryphus, words, 'queue');
      }
      const draw = (looked?: (jobs: number) => void) =>
        this.#draw(gryphus, selected, mine ? owner : undefined, flags, looked);
      if (!flags.watch) {
        const { withLooked } = await import('./show/progress.ts');
        process.stdout.write(await withLooked(gryphus, draw));
        return sayMissing(gryphus, words, 'queue');
      }
      const stop = interruptible();
      await watch(gryphus, draw, stop.signal);
    });
  }

  async #analyze(
    words: readonly string[],
    { constraint, home }: { constraint?: string | undefined; home?: string | undefined },
  ) {
    const options = [
      ...words,
      ...(constraint === undefined ? [] : ['--constraint', constraint]),
      ...(home === undefined ? [] : ['--home', home]),
    ];
    const { WhyCommand } = await import('./why.ts');
    return new WhyCommand(options, this.config).run();
  }

  async #formatted(
    gryphus: Gryphus,
    listed: AsyncGenerator<JobView>,
    file: string,
    { wide }: { readonly wide: boolean },
  ): Promise<string> {
    const { formatted } = await import('./print-format/table.ts');
    const { title, summary, lines, jobs } = await formatted(listed, file);
    const out = title ? [`\n\n-- Schedd: ${hostname()} : <local?... @ ${longDate(Date.now())}`] : [];
    const width: Width = wide ? undefined : terminalWidth();
    out.push(...lines.map((line) => cut(line, width)));
    if (summary) out.push('', ...totalsLines(countJobs(jobs), undefined, sumOf(await gryphus.clusters()), width));
    return out.map((line) => `${line}\n`).join('');
  }

  async #draw(
    gryphus: Gryphus,
    selected: readonly Selection[],
    owner: string | undefined,
    flags: ViewFlags & {
      totals: boolean;
      wide: boolean;
      dag: boolean;
      limit?: number | undefined;
    },
    looked?: (jobs: number) => void,
  ): Promise<string> {
    const { BATCH_ATTRIBUTES, batchesOfClusters, batchesOfJobs } = await import('../index.ts');
    const width: Width = flags.wide ? undefined : terminalWidth();
    const view = viewOf(flags);
    const out = [`\n\n-- Schedd: ${hostname()} : <local?... @ ${longDate(Date.now())}`];
    let all = await gryphus.clusters();
    const each = view !== undefined || flags.dag || flags.limit !== undefined;
    const counted = each ? undefined : clustersOf(all, selected);
    let query: Totals;
    if (counted) {
      query = sumOf(counted);
      if (!flags.totals) out.push(...batchLines(batchesOfClusters(counted, all), width));
    } else {
      const attributes = view ? viewAttributes(view) : flags.dag ? DAG_ATTRIBUTES : BATCH_ATTRIBUTES;
      const whole: JobView[] = [];
      const sums: Sums = { ...NO_JOBS };
      const seen = new Map<number, Sums>();
      if (view && !flags.totals) out.push(viewHead(view, width));
      const now = Date.now() / 1000;
      for await (const jobs of queryAll(gryphus, selected, { attributes, limit: flags.limit, looked })) {
        countByCluster(jobs, seen);
        const shown = view?.only ? jobs.filter((job) => view.only?.(job.ad)) : jobs;
        if (view?.only) countJobs(shown, sums);
        // Printing jobs at once avoids keeping them all in memory.
        if (view && !flags.totals) for (const line of viewRows(view, shown, now, width)) out.push(line);
        else if (!view) whole.push(...shown);
      }
      query = view?.only ? sums : sumOf([...seen.values()].map((totals) => ({ manager: false, totals })));
      if (flags.limit === undefined) all = asSeen(all, clustersOf(all, selected), seen);
      if (!view && !flags.totals) {
        if (flags.dag) out.push(cut(DAG_HEAD, width), ...dagLines(whole, now, width));
        else out.push(...batchLines(batchesOfJobs(whole, all), width));
      }
      if (view?.bare) return `${out.join('\n')}\n`;
    }
    const ofOwner = () => all.filter((cluster) => cluster.owner === owner);
    const user = owner === undefined ? undefined : { name: owner, totals: sumOf(ofOwner()) };
    if (!flags.totals) out.push('');
    out.push(...totalsLines(query, user, sumOf(all), width), ...siteNotes(await gryphus.sites()));
    return `${out.join('\n')}\n`;
  }
}

type ViewFlags = { readonly [K in keyof typeof VIEWS]?: boolean };

function viewOf(flags: ViewFlags): View | undefined {
  const name = (Object.keys(VIEWS) as (keyof typeof VIEWS)[]).find((one) => flags[one]);
  return name && VIEWS[name];
}

/** Makes the counters, read a moment earlier, agree with the jobs that were actually listed. */
function asSeen(
  all: readonly ClusterView[],
  whole: readonly ClusterView[] | undefined,
  seen: ReadonlyMap<number, Sums>,
): readonly ClusterView[] {
  const read = new Set(whole?.map(({ cluster }) => cluster));
  return all.map((one) => {
    if (!read.has(one.cluster)) return one;
    return {
      ...one,
      totals: { ...(seen.get(one.cluster) ?? NO_JOBS), unmaterialized: one.totals.unmaterialized },
    };
  });
}

function countByCluster(jobs: readonly JobView[], seen: Map<number, Sums>): void {
  for (let from = 0, to = 0; from < jobs.length; from = to) {
    const cluster = jobs[from]?.id.cluster ?? 0;
    while (jobs[to]?.id.cluster === cluster) to++;
    const sums = seen.get(cluster) ?? { ...NO_JOBS };
    seen.set(cluster, sums);
    countJobs(jobs.slice(from, to), sums);
  }
}

/** The clusters of a selection that names no single jobs; `undefined` if each job must be read. */
function clustersOf(all: readonly ClusterView[], selected: readonly Selection[]): ClusterView[] | undefined {
  if (selected.some(({ ids, constraint }) => ids !== undefined || constraint !== undefined)) return undefined;
  return all.filter((one) =>
    selected.some(
      ({ clusters, owner }) =>
        (clusters === undefined || clusters.includes(one.cluster)) && (owner === undefined || owner === one.owner),
    ),
  );
}

function queryAll(
  gryphus: Gryphus,
  selected: readonly Selection[],
  {
    attributes,
    limit,
    looked,
  }: {
    readonly attributes?: readonly string[];
    readonly limit?: number | undefined;
    readonly looked?: ((jobs: number) => void) | undefined;
  },
): AsyncGenerator<readonly JobView[]> {
  return gryphus.queryChunks({
    ...oneOf(selected),
    ...(attributes ? { attributes } : {}),
    ...(limit === undefined ? {} : { limit }),
    looked,
  });
}

/** The jobs of a list in another form than the table's: those that the table would have (`--hold`, `--run`, `--idle`). */
async function* listed(
  gryphus: Gryphus,
  selected: readonly Selection[],
  flags: ViewFlags & { readonly limit?: number | undefined },
): AsyncGenerator<JobView> {
  const only = viewOf(flags)?.only;
  let left = flags.limit ?? Number.POSITIVE_INFINITY;
  for await (const jobs of queryAll(gryphus, selected, only ? {} : { limit: flags.limit })) {
    for (const job of jobs) {
      if (left === 0) return;
      if (only && !only(job.ad)) continue;
      yield job;
      left -= 1;
    }
  }
}

/** Redraws shortly after each change, at most once a second. */
async function watch(gryphus: Gryphus, draw: () => Promise<string>, signal: AbortSignal): Promise<void> {
  let changed = true;
  let wake = (): void => undefined;
  const lost: unknown[] = [];
  const follow = (async () => {
    for await (const _event of gryphus.events({ signal })) {
      changed = true;
      wake();
    }
  })().catch((error: unknown) => {
    if (!signal.aborted) lost.push(error);
    wake();
  });
  signal.addEventListener('abort', () => wake());
  const out = new Out();
  while (!signal.aborted && lost.length === 0) {
    if (changed) {
      changed = false;
      out.control('\x1b[H\x1b[2J');
      out.text(await draw());
      await out.flush();
    }
    // At most once a second. Redraws even without events, because run times advance.
    await sleep(1000, undefined, { signal }).catch(() => undefined);
    if (changed || signal.aborted) continue;
    const late = setTimeout(() => wake(), 4000);
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
    clearTimeout(late);
    changed = true;
  }
  await follow;
  if (lost.length > 0) throw lost[0];
}
