import { Flags } from '@oclif/core';
import { GryphusCommand, needed } from '../command.ts';

export class FlockPause extends GryphusCommand {
  static override summary = 'Pause an agreement with another pool, or resume it.';
  static override description =
    'No further job goes to the partner or comes from it; jobs of theirs are vacated after the retirement of the agreement.';
  static override examples = [
    '<%= config.bin %> flock pause physics',
    '<%= config.bin %> flock pause physics --resume',
  ];
  static override args = { name: needed('the partner') };
  static override flags = { resume: Flags.boolean({ summary: 'Resume the agreement.' }) };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(FlockPause);
    const flock = await (await this.configuration(flags)).flock();
    await flock.pause(args.name, !flags.resume);
    process.stdout.write(`The agreement with ${args.name} is ${flags.resume ? 'in force again' : 'paused'}.\n`);
  }
}
