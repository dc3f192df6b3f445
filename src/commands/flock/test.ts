import { GryphusCommand, needed } from '../command.ts';
import { listFlags } from '../json-list.ts';
import { printSteps } from '../print-steps.ts';

export class FlockTest extends GryphusCommand {
  static override summary = 'Check an agreement step by step and say what to fix.';
  static override description =
    'Its file, its key, the gateway, the link, and what either side lends now. Exit status 1 if a step fails. Starts the agent.';
  static override examples = ['<%= config.bin %> flock test physics', '<%= config.bin %> flock test physics --json'];
  static override args = { name: needed('the partner') };
  static override flags = listFlags;

  async run(): Promise<void> {
    const { args, flags } = await this.parse(FlockTest);
    await this.withGryphus(flags, async () => {
      const flock = await (await this.configuration(flags)).flock();
      await printSteps(flock.test(args.name), flags);
    });
  }
}
