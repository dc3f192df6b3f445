import type { ActionRequest, ActionResult, Gryphus, Selection } from '../index.ts';
import { GryphusCommand, word } from './command.ts';
import { actFlag, actJson } from './json-list.ts';
import { allFlag, constraintFlag, mustName } from './select.ts';
import { actionLines, type JobOrder } from './show/act.ts';

/** Flags of all commands that act on jobs. */
export const ORDER_FLAGS = { constraint: constraintFlag, all: allFlag, json: actFlag };
export const ORDER_ARGS = { jobs: word('clusters (12), jobs (12.3) or users') };

interface Flags {
  readonly home?: string | undefined;
  readonly constraint?: string | undefined;
  readonly all: boolean;
  readonly json: boolean;
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
}
