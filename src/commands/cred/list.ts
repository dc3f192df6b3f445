import { Flags } from '@oclif/core';
import { GryphusCommand, prose, terminalWidth } from '../command.ts';
import { gaugeText } from '../show/gauge.ts';

export class CredList extends GryphusCommand {
  static override summary = 'Show every credential like a fuel gauge: time left, jobs, sites.';
  static override description =
    prose(`The one that ends first is at the top; below what is wrong stands what to type. Credentials are described in
credentials/NAME.toml beside config.toml (\`gryphus config --docs\`), or named by jobs (x509userproxy). Exit status 1 where
one that jobs need cannot be used.`);
  static override examples = ['<%= config.bin %> cred list', '<%= config.bin %> cred list --json'];
  static override flags = { json: Flags.boolean({ summary: 'A JSON array; times in Unix seconds.' }) };

  async run(): Promise<void> {
    const { flags } = await this.parse(CredList);
    await this.withGryphus(flags, async (gryphus) => {
      const all = await gryphus.credentials();
      process.stdout.write(flags.json ? `${JSON.stringify(all, undefined, 2)}\n` : gaugeText(all, terminalWidth()));
      if (all.some((one) => one.state !== 'good' && one.waiting + one.there + one.held > 0)) process.exitCode = 1;
    });
  }
}
