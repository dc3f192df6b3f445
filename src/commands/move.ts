import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { prose, word } from './command.ts';
import { ORDER_FLAGS, OrderCommand } from './order-jobs.ts';

export class Move extends OrderCommand {
  static override strict = false;
  static override summary = 'Send jobs that have not started to another site, or to the pool.';
  static override description =
    prose(`Idle and held jobs move at once, and held ones stay held. A job that waits in the queue of its site is withdrawn there
first; it moves when the site has confirmed that it will not run it, and stays if it has started meanwhile. A running job is not
moved: hold it first. Exit status 1 if a job could not be moved.`);
  static override examples = [
    '<%= config.bin %> move 12.3 cluster2',
    `<%= config.bin %> move 12 cluster2 --constraint 'JobStatus == 5'`,
    '<%= config.bin %> move 12 --pool',
    `<%= config.bin %> move 12 'batch slurm cluster2'`,
  ];
  static override args = {
    jobs: word('clusters (12), jobs (12.3) or users; then the site, or a value of grid_resource'),
  };
  static override flags = {
    ...ORDER_FLAGS,
    pool: Flags.boolean({ summary: 'Send them to the pool instead of a site.' }),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Move);
    const words = [...(argv as string[])];
    const site = flags.pool ? 'pool' : words.pop();
    if (site === undefined || /^\d+(\.\d+)?$/.test(site)) {
      throw new GryphusError('usage', 'Name the site that the jobs go to.', {
        suggestions: ['gryphus move 12.3 SITE', 'gryphus move 12.3 --pool', 'gryphus site list'],
      });
    }
    await this.order('move', words, flags, (gryphus, target) => gryphus.move(target, site));
  }
}
