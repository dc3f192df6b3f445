import type { ActionRequest, ActionResult, Gryphus, Selection } from '../index.ts';
import { formatJobId } from '../job/ids.ts';
import { counted } from '../util/plain-text.ts';
import { GryphusCommand, Out, word } from './command.ts';
import { actFlag, actJson } from './json-list.ts';
import { allFlag, constraintFlag, mustName, oneOf } from './select.ts';
import { actionLines, type JobOrder, WORDS } from './show/act.ts';

/** Flags of all commands that act on jobs. */
export const ORDER_FLAGS = { constraint: constraintFlag, all: allFlag, json: actFlag };
export const ORDER_ARGS = { jobs: word('clusters (12), jobs (12.3) or users') };

interface Flags {
  readonly home?: string | undefined;
  readonly constraint?: string | undefined;
  readonly all: boolean;
  readonly json: boolean;
  readonly 'dry-run'?: boolean;
}

/** One action on the named jobs, and its results. Status 1 if any of them failed. */
export abstract class OrderCommand extends GryphusCommand {
  protected async order(
    order: JobOrder,
    words: readonly string[],
    flags: Flags,
    work: (gryphus: Gryphus, target: Selection & Pick<ActionRequest, 'looked'>) => Promise<readonly ActionResult[]>,
  ): Promise<void> {
    const named = mustName({ words, ...flags });
    if (flags['dry-run'] === true) return this.#dryRun(order, named, flags);
    const all: (readonly ActionResult[])[] = [];
    const { withLooked } = await import('./show/progress.ts');
    await this.withGryphus(flags, async (gryphus) => {
      for (const target of named) {
        const results = await withLooked(gryphus, (looked) => work(gryphus, { ...target, looked }));
        for (const { ok, line } of actionLines(order, target, results)) {
          if (!flags.json) (ok ? process.stdout : process.stderr).write(`${line}\n`);
          if (!ok) process.exitCode = 1;
        }
        all.push(results);
      }
    });
    if (flags.json) process.stdout.write(actJson(all.flat()));
  }

  /** Prints the jobs that the action would change. */
  async #dryRun(order: JobOrder, named: readonly Selection[], flags: Flags): Promise<void> {
    const { concerned, jobLine } = await import('./show/dry-run.ts');
    const rows: string[] = [];
    const json: { job: string; state: string }[] = [];
    await this.withGryphus(flags, async (gryphus) => {
      for await (const job of gryphus.query({ ...oneOf(named), attributes: ['Cmd', 'Args', 'Arguments'] })) {
        if (!concerned(order, job.state)) continue;
        if (flags.json) json.push({ job: formatJobId(job.id), state: job.state });
        else rows.push(jobLine(job));
      }
    });
    if (flags.json) return void process.stdout.write(`${JSON.stringify(json, undefined, 2)}\n`);
    const out = new Out();
    for (const row of rows) out.line(row);
    out.line(`${counted(rows.length, 'job')} would be ${WORDS[order]}.`);
    await out.flush();
    if (rows.length === 0) process.exitCode = 1;
  }
}
