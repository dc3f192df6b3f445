import { GryphusError } from '../../errors.ts';
import { GryphusCommand, needed } from '../command.ts';

export class FlockRm extends GryphusCommand {
  static override summary = 'End an agreement with another pool.';
  static override description =
    'Its key is no longer accepted. Jobs of theirs here and of ours there are ended within ten seconds, and run again elsewhere.';
  static override examples = [
    '<%= config.bin %> flock rm physics',
    '<%= config.bin %> flock rm bio --home /srv/gryphus',
  ];
  static override args = { name: needed('the partner') };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(FlockRm);
    const flock = await (await this.configuration(flags)).flock();
    if (!flock.remove(args.name))
      throw new GryphusError('bad-input', `There is no agreement with '${args.name}'.`, {
        suggestions: ['gryphus flock list   # shows those that there are'],
      });
    process.stdout.write(`The agreement with ${args.name} has ended.\n`);
  }
}
