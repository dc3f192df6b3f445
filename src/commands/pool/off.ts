import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import { GryphusCommand, needed, prose } from '../command.ts';

export class PoolOff extends GryphusCommand {
  static override summary = 'Take this machine out of the pool, for its owner.';
  static override description =
    prose(`Within a second the machine takes no more jobs. Running jobs are asked to end (--graceful, the default), killed
(--now), or left to run to their end (--peaceful); those that do not end by themselves run again elsewhere. This lasts, even if
the agent restarts, until \`gryphus pool on\` or until the time of --for is over.`);
  static override examples = [
    '<%= config.bin %> pool off',
    '<%= config.bin %> pool off --now --for 2h',
    '<%= config.bin %> pool off --peaceful',
  ];
  static override flags = {
    now: Flags.boolean({ summary: 'Kill the jobs at once.', exclusive: ['graceful', 'peaceful'] }),
    graceful: Flags.boolean({ summary: 'Ask them to end; the default.', exclusive: ['now', 'peaceful'] }),
    peaceful: Flags.boolean({ summary: 'Let them run to their end.', exclusive: ['now', 'graceful'] }),
    for: Flags.string({ helpValue: '<time>', summary: 'Only for this time, such as 2h or 1h30m.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(PoolOff);
    const { kinds } = await import('../../index.ts');
    const seconds = flags.for === undefined ? undefined : (await kinds()).duration.read(flags.for);
    if (flags.for !== undefined && seconds === undefined)
      throw new GryphusError('usage', `--for ${flags.for}: must be a time like "30s", "5m", "1h30m" or "7d".`);
    const how = flags.now ? 'now' : flags.peaceful ? 'peaceful' : 'graceful';
    (await (await this.configuration(flags)).machineOwner()).off(how, seconds);
    const until = flags.for === undefined ? 'until `gryphus pool on`' : `for ${flags.for}`;
    process.stdout.write(`This machine is out of the pool ${until}.\n`);
  }
}

export class PoolOn extends GryphusCommand {
  static override summary = 'Put this machine back into the pool.';
  static override description =
    'Undoes `gryphus pool off`. From then on, `pool.policy` decides again whether jobs run.';
  static override examples = [
    '<%= config.bin %> pool on',
    '<%= config.bin %> pool on && <%= config.bin %> pool idle --once',
  ];

  async run(): Promise<void> {
    const { flags } = await this.parse(PoolOn);
    const was = (await (await this.configuration(flags)).machineOwner()).on();
    process.stdout.write(was ? 'This machine is back in the pool.\n' : 'This machine was already in the pool.\n');
  }
}

export class PoolKeep extends GryphusCommand {
  static override summary = 'Reserve some cores of this machine for its owner.';
  static override description =
    'Running jobs continue; later jobs share the remaining cores. `keep 0` gives all cores to the pool.';
  static override examples = ['<%= config.bin %> pool keep 1', '<%= config.bin %> pool keep 0'];
  static override args = { cores: needed('how many cores') };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PoolKeep);
    if (!/^\d{1,6}$/.test(args.cores)) throw new GryphusError('usage', `'${args.cores}' is not a number of cores.`);
    (await (await this.configuration(flags)).machineOwner()).keep(Number(args.cores));
    process.stdout.write(`${args.cores} of this machine's cores are reserved for its owner.\n`);
  }
}
