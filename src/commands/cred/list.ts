import { Flags } from '@oclif/core';
import { GryphusCommand, prose, terminalWidth } from '../command.ts';
import { credentialStatusText } from '../show/credential-status.ts';

export class CredList extends GryphusCommand {
  static override summary = 'Show every credential: time left, and the jobs and sites that use it.';
  static override description =
    prose(`Sorted by expiry. Below a problem is the command that fixes it. Credentials are configured in
credentials/NAME.toml beside config.toml (\`gryphus config --docs\`) or named by jobs (x509userproxy). Exit status 1 if a
credential that jobs need cannot be used.`);
  static override examples = ['<%= config.bin %> cred list', '<%= config.bin %> cred list --json'];
  static override flags = { json: Flags.boolean({ summary: 'A JSON array; times in Unix seconds.' }) };

  async run(): Promise<void> {
    const { flags } = await this.parse(CredList);
    await this.withGryphus(flags, async (gryphus) => {
      const all = await gryphus.credentials();
      process.stdout.write(
        flags.json ? `${JSON.stringify(all, undefined, 2)}\n` : credentialStatusText(all, terminalWidth()),
      );
      if (all.some((one) => one.state !== 'good' && one.waiting + one.there + one.held > 0)) process.exitCode = 1;
    });
  }
}
