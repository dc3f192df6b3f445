import { Flags } from '@oclif/core';
import type { RetryResult } from '../index.ts';
import { formatJobId } from '../job/ids.ts';
import { counted } from '../util/plain-text.ts';
import { GryphusCommand, Out, prose } from './command.ts';
import { ORDER_ARGS, ORDER_FLAGS } from './order-jobs.ts';
import { mustName } from './select.ts';
import { visible } from './show/width.ts';

export class Retry extends GryphusCommand {
  static override strict = false;
  static override summary = 'Submit failed and removed jobs again.';
  static override description =
    prose(`Failed jobs are those that completed with an exit status other than 0 or by a signal, and those that were removed. They are
submitted with their old descriptions, those of one cluster as one new cluster; input files are read anew. Of a cluster or
user, jobs that did not fail are left alone, and so is a job that was retried before. Held jobs need \`gryphus release\`; the
nodes of a DAG, \`gryphus dag submit\`. Exit status 1 if nothing was to be retried, or a named job was not.`);
  static override examples = [
    '<%= config.bin %> retry 12 --dry-run',
    '<%= config.bin %> retry 12',
    '<%= config.bin %> retry 12.3 12.7',
    `<%= config.bin %> retry --constraint 'ExitCode == 137'`,
  ];
  static override args = ORDER_ARGS;
  static override flags = {
    ...ORDER_FLAGS,
    'dry-run': Flags.boolean({ summary: 'Print which jobs would be submitted again, and how they failed.' }),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Retry);
    const named = mustName({ words: argv as string[], ...flags });
    const results: RetryResult[] = [];
    let held = 0;
    await this.withGryphus(flags, async (gryphus) => {
      for (const target of named) results.push(...(await gryphus.retry(target, { dryRun: flags['dry-run'] })));
      if (results.length > 0) return;
      for (const target of named)
        for await (const jobs of gryphus.queryChunks({ ...target, states: ['held'], attributes: [] }))
          held += jobs.length;
    });
    const done = results.filter(({ result }) => result === 'done');
    if (done.length === 0 || done.length < results.length) process.exitCode = 1;
    if (flags.json) return void process.stdout.write(`${JSON.stringify(results.map(row), undefined, 2)}\n`);
    const out = new Out();
    for (const { id, outcome = '', command = '', as } of done) {
      const how = `${formatJobId(id).padEnd(12)} ${outcome.padEnd(16)}`;
      out.line(as === undefined ? `${how} ${visible(command)}` : `${how} is submitted again as ${formatJobId(as)}`);
    }
    await out.flush();
    for (const { id, result, message } of results)
      if (result !== 'done') process.stderr.write(`Job ${formatJobId(id)} ${message}\n`);
    const would = flags['dry-run'] ? ' would be' : '';
    const lets = held === 1 ? 'is held: `gryphus release` lets it run' : 'are held: `gryphus release` lets them run';
    const others = held === 0 ? '' : ` ${counted(held, 'job')} ${lets}.`;
    const what =
      done.length === 0 ? `No failed jobs.${others}` : `${counted(done.length, 'job')}${would} submitted again.`;
    (done.length === 0 ? process.stderr : process.stdout).write(`${what}\n`);
  }
}

function row({ id, as, ...rest }: RetryResult): Record<string, unknown> {
  return { job: formatJobId(id), ...rest, ...(as === undefined ? {} : { as: formatJobId(as) }) };
}
