import { GryphusCommand, prose } from './command.ts';
import { listFlags } from './json-list.ts';
import { printSteps } from './print-steps.ts';

export class Doctor extends GryphusCommand {
  static override summary = 'Check this machine, and say what to fix.';
  static override description =
    prose(`Looks at Node, the configuration, Redis, the state directory and its disk, ssh and its keys, the clock, mail, and whether systemd
lets services linger. Starts and changes nothing. Exit status 1 if something has to be fixed. For a site: \`gryphus site test\`.`);
  static override examples = ['<%= config.bin %> doctor', '<%= config.bin %> doctor --json'];
  static override flags = listFlags;

  async run(): Promise<void> {
    const { flags } = await this.parse(Doctor);
    await printSteps((await this.configuration(flags)).examine(), flags);
  }
}
