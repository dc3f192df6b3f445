import { Flags } from '@oclif/core';
import { GryphusCommand, interruptible, prose, terminalWidth, word } from '../command.ts';
import { dagLines, dagTable, progressBar } from '../show/dag.ts';

export class DagStatusCommand extends GryphusCommand {
  static override summary = 'Show the status of DAGs.';
  static override description = prose(
    'Without a name, shows all DAGs in the queue. For one DAG, named by its cluster or its file, also shows a progress bar, the critical path that remains and what it waits for, and what failed.',
  );
  static override examples = [
    '<%= config.bin %> dag status',
    '<%= config.bin %> dag status diamond.dag --watch',
    '<%= config.bin %> dag status 12 --json',
  ];
  static override args = { dag: word('a cluster or a DAG file') };
  static override flags = {
    json: Flags.boolean({ summary: 'A JSON array.' }),
    watch: Flags.boolean({ summary: 'Redraw every two seconds until the DAG has ended.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(DagStatusCommand);
    const width = terminalWidth();
    const bar = (fraction: number): string => progressBar(fraction, Math.max(10, Math.min(60, (width ?? 80) - 10)));
    await this.withGryphus(flags, async (gryphus) => {
      const dags = await gryphus.dags();
      const stop = interruptible();
      for (;;) {
        const all = await dags.status(args.dag);
        const [one] = all;
        const lines = flags.json
          ? [JSON.stringify(all, undefined, 2)]
          : args.dag === undefined || one === undefined
            ? dagTable(all, width)
            : dagLines(one, bar, width);
        if (flags.watch && process.stdout.isTTY) process.stdout.write('\u001b[H\u001b[2J');
        process.stdout.write(`${lines.join('\n')}\n`);
        const over = args.dag !== undefined && (one?.exitCode !== undefined || one?.manager === 'gone');
        if (!flags.watch || over || stop.signal.aborted) return;
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, 2000);
          stop.signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
        });
        if (stop.signal.aborted) return;
      }
    });
  }
}
