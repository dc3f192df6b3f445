import { askAtTerminal } from '../ask.ts';
import { GryphusCommand, needed, prose } from '../command.ts';

export class SiteLogin extends GryphusCommand {
  static override summary = 'Log in to a site that asks for a password, a passphrase or a one-time code.';
  static override description = prose(
    `You log in once: the connection is kept while there are jobs, and for 8 hours without any. When it is lost, jobs wait until
you log in again.`,
  );
  static override examples = [
    '<%= config.bin %> site login cluster1',
    '<%= config.bin %> site login cluster1 && <%= config.bin %> submit sweep.sub',
  ];
  static override args = { name: needed('the site') };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SiteLogin);
    await this.withGryphus(flags, async (gryphus) => {
      await gryphus.login(args.name, askAtTerminal);
      process.stdout.write(`Logged in to ${args.name}; the connection is kept.\n`);
    });
  }
}
