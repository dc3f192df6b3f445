import { Flags } from '@oclif/core';
import type { Action } from '../index.ts';
import { prose } from './command.ts';
import { ORDER_ARGS, ORDER_FLAGS, OrderCommand } from './order-jobs.ts';

const FLAGS = {
  ...ORDER_FLAGS,
  reason: Flags.string({ helpValue: '<text>', summary: 'The reason, kept with the job and shown to its owner.' }),
  'dry-run': Flags.boolean({ summary: 'Print which jobs it would be, and change nothing.' }),
};

/** hold, release and rm are one command under three names. */
abstract class Act extends OrderCommand {
  protected abstract readonly action: Action;

  protected async act(
    words: readonly string[],
    flags: {
      home?: string | undefined;
      constraint?: string | undefined;
      all: boolean;
      reason?: string | undefined;
      json: boolean;
      'dry-run': boolean;
      force?: boolean;
      subcode?: number | undefined;
    },
  ): Promise<void> {
    await this.order(this.action, words, flags, (gryphus, target) =>
      gryphus.act(this.action, {
        ...target,
        ...(flags.reason === undefined ? {} : { reason: flags.reason }),
        ...(flags.force === true ? { force: true } : {}),
        ...(flags.subcode === undefined ? {} : { subcode: flags.subcode }),
      }),
    );
  }
}

export class Hold extends Act {
  static override strict = false;
  static override summary = 'Hold jobs: they do not run until they are released.';
  static override description = prose(
    'A running job is stopped at its site first. Exit status 1 if a job could not be held.',
  );
  static override examples = [
    '<%= config.bin %> hold 12.3',
    '<%= config.bin %> hold 12 --reason "waiting for new data"',
    `<%= config.bin %> hold 12 --constraint 'ProcId >= 100'`,
  ];
  static override args = ORDER_ARGS;
  static override flags = {
    ...FLAGS,
    subcode: Flags.integer({ helpValue: '<n>', summary: "The hold's HoldReasonSubCode; default: 0." }),
  };
  protected readonly action = 'hold';

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Hold);
    await this.act(argv as string[], flags);
  }
}

export class Release extends Act {
  static override strict = false;
  static override summary = 'Release held jobs.';
  static override description = prose('Exit status 1 if a job could not be released.');
  static override examples = ['<%= config.bin %> release 12.3', '<%= config.bin %> release --all'];
  static override args = ORDER_ARGS;
  static override flags = FLAGS;
  protected readonly action = 'release';

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Release);
    await this.act(argv as string[], flags);
  }
}

export class Rm extends Act {
  static override strict = false;
  static override summary = 'Remove jobs from the queue, wherever they are.';
  static override description =
    prose(`A running job is stopped at its site; it leaves the queue when the site has confirmed that.
Exit status 1 if a job could not be removed.`);
  static override examples = [
    '<%= config.bin %> rm 12.3',
    '<%= config.bin %> rm 12 13 14',
    '<%= config.bin %> rm --all --dry-run',
    `<%= config.bin %> rm 12 --constraint 'ProcId % 2 == 1'`,
    `<%= config.bin %> rm --constraint 'JobStatus == 5 && HoldReasonCode == 12'`,
  ];
  static override args = ORDER_ARGS;
  static override flags = {
    ...FLAGS,
    force: Flags.boolean({
      aliases: ['forcex'],
      summary: 'Forget the jobs at once, even if their site still runs them (see `site audit`).',
    }),
  };
  protected readonly action = 'remove';

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Rm);
    await this.act(argv as string[], flags);
  }
}
