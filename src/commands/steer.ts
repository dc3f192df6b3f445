import { prose } from './command.ts';
import { ORDER_ARGS, ORDER_FLAGS, OrderCommand } from './order-jobs.ts';

const STATUS = 'Exit status 1 if a job named by its id is not running in the pool, or if none of the jobs is.';

/** vacate, suspend, continue and checkpoint are one command under four names. */
abstract class Steer extends OrderCommand {
  // oclif reads only the class's own properties, not inherited ones.
  static override strict = false;
  static override args = ORDER_ARGS;
  static override flags = ORDER_FLAGS;
  protected abstract readonly how: 'vacate' | 'suspend' | 'continue' | 'checkpoint';

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Steer);
    await this.order(this.how, argv as string[], flags, (gryphus, target) => gryphus.steer(this.how, target));
  }
}

export class Vacate extends Steer {
  static override summary = 'Make pool jobs give up their slots; they wait for another.';
  static override description = prose(STATUS);
  static override examples = ['<%= config.bin %> vacate 12.3', '<%= config.bin %> vacate 12 13.4'];
  protected readonly how = 'vacate';
}

export class Suspend extends Steer {
  static override summary = 'Suspend pool jobs where they run, until `continue`.';
  static override description = prose(STATUS);
  static override examples = [
    '<%= config.bin %> suspend 12.3',
    `<%= config.bin %> suspend 12 --constraint 'ProcId > 10'`,
  ];
  protected readonly how = 'suspend';
}

export class Continue extends Steer {
  static override summary = 'Resume suspended pool jobs.';
  static override description = prose(STATUS);
  static override examples = ['<%= config.bin %> continue 12.3', '<%= config.bin %> continue --all'];
  protected readonly how = 'continue';
}

export class Checkpoint extends Steer {
  static override summary = 'Checkpoint pool jobs where they run; they go on.';
  static override description = prose(
    `For jobs with \`want_checkpoint = true\`. The log of the job gets event 003 when its image is written, or event 008
with the reason if it cannot be. ${STATUS}`,
  );
  static override examples = ['<%= config.bin %> checkpoint 12.3', '<%= config.bin %> checkpoint 12'];
  protected readonly how = 'checkpoint';
}
