import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { parseJobId } from '../job/ids.ts';
import { GryphusCommand, interruptible, needed } from './command.ts';

export class Tail extends GryphusCommand {
  static override summary = "Show a job's standard output or error, even while it runs.";
  static override examples = ['<%= config.bin %> tail -f 12.3', '<%= config.bin %> tail 12.3 --stderr --bytes 1000'];
  static override args = { job: needed('a job (12.3); 12 is 12.0') };
  static override flags = {
    follow: Flags.boolean({ char: 'f', summary: 'Follow until the job has ended.' }),
    stderr: Flags.boolean({ char: 'e', summary: 'Standard error instead of standard output.' }),
    bytes: Flags.integer({
      char: 'b',
      aliases: ['maxbytes'],
      helpValue: '<n>',
      min: 0,
      summary: 'Start this many bytes before the current end.',
    }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Tail);
    const id = parseJobId(args.job) ?? parseJobId(`${args.job}.0`);
    if (!id)
      throw new GryphusError('usage', `'${args.job}' is not a job.`, {
        suggestions: ['Write a job id, such as 12.3.'],
      });
    const { signal } = interruptible();
    await this.withGryphus(flags, async (gryphus) => {
      const chunks = gryphus.tail({
        id,
        stream: flags.stderr ? 'stderr' : 'stdout',
        follow: flags.follow,
        signal,
        ...(flags.bytes === undefined ? {} : { lastBytes: flags.bytes }),
      });
      try {
        for await (const chunk of chunks) {
          if (!process.stdout.write(chunk)) await new Promise((resolve) => process.stdout.once('drain', resolve));
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    });
  }
}
