import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import { GryphusCommand, needed, prose } from '../command.ts';

export class CredRenew extends GryphusCommand {
  static override summary = 'Renew a credential now, as configured.';
  static override description =
    prose(`Runs its renew_command, or gets a proxy from its MyProxy server. Jobs that were held for it are released. The
output of a renew_command is never shown, since it may be secret; run the command by hand to see why it fails.`);
  static override examples = ['<%= config.bin %> cred renew cluster-key', '<%= config.bin %> cred renew grid --json'];
  static override args = { name: needed('the credential, as `cred list` shows it') };
  static override flags = { json: Flags.boolean({ summary: 'A JSON object.' }) };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(CredRenew);
    await this.withGryphus(flags, async (gryphus) => {
      const end = await gryphus.renewCredential(args.name);
      if (flags.json)
        process.stdout.write(
          `${JSON.stringify({ ok: end.ok, ...(end.ok ? {} : { message: end.message }), end: end.now.end })}\n`,
        );
      if (!end.ok)
        throw new GryphusError('credential-invalid', end.message, { suggestions: ['See `gryphus cred list`.'] });
      if (flags.json) return;
      const { timeText } = await import('../../util/plain-text.ts');
      const until = end.now.end === undefined ? '' : `, until ${timeText(end.now.end)}`;
      process.stdout.write(`The ${end.now.what} '${args.name}' is fresh${until}.\n`);
    });
  }
}
