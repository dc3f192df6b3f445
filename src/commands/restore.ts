import { resolve } from 'node:path';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { counted } from '../util/plain-text.ts';
import { askAtTerminal } from './ask.ts';
import { GryphusCommand, needed, Out, prose } from './command.ts';
import { PASSPHRASE_FLAGS, passphraseIn } from './passphrase.ts';
import { stepLines } from './recover.ts';

export class Restore extends GryphusCommand {
  static override summary = 'Put a backup back, and learn from the sites what happened since.';
  static override description =
    prose(`On the same machine or another one, where there is no queue yet. Jobs that were submitted after the backup and that a site
has are put into the queue, too (see \`gryphus recover\`), and the sites refuse the former state directory from then on.

No job runs a second time without a word: what may have run since the backup is held, with that reason; \`gryphus release\`
runs it again. Exit status 1 if a site did not answer.`);
  static override examples = [
    '<%= config.bin %> restore ~/gryphus.backup',
    '<%= config.bin %> restore /mnt/stick/gryphus.backup --into ~/recovered --json',
    `<%= config.bin %> restore ~/gryphus.backup && <%= config.bin %> release --constraint 'HoldReasonSubCode == 1023'`,
  ];
  static override args = { file: needed('the file that `gryphus backup` wrote') };
  static override flags = {
    ...PASSPHRASE_FLAGS,
    into: Flags.string({
      helpValue: '<dir>',
      summary: 'Where the results of jobs go whose own directory is gone.',
      default: 'recovered',
    }),
    json: Flags.boolean({ summary: 'A JSON object.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Restore);
    const { Gryphus, restoreAgent } = await import('../index.ts');
    const given = flags['passphrase-file'];
    const restored = await restoreAgent(
      {
        file: resolve(args.file),
        into: resolve(flags.into),
        passphrase: given === undefined ? asked : async () => passphraseIn(given),
        ask: askAtTerminal,
      },
      this.openOptions(flags),
    );
    await Gryphus.up(this.openOptions(flags));
    if (restored.steps.some(({ outcome }) => outcome === 'unreachable')) process.exitCode = 1;
    if (flags.json) return void process.stdout.write(`${JSON.stringify(restored, undefined, 2)}\n`);
    const out = new Out();
    out.line(
      `Agent ${restored.agent} is as it was on ${restored.host} at ${new Date(restored.at).toLocaleString('sv')}.`,
    );
    for (const file of restored.kept) out.line(`${file} was here already and stays; the backup has another one.`);
    if (restored.movedFrom !== undefined)
      out.line(`The state directory was ${restored.movedFrom}: jobs made from batch scripts name files below it.`);
    for (const line of stepLines(restored, false)) out.line(line);
    if (restored.held > 0) {
      out.line(`${counted(restored.held, 'job')} may have run since the backup and are held. To run them again:`);
      out.line(`  gryphus release --constraint 'HoldReasonSubCode == ${restored.subCode}'`);
    }
    await out.flush();
  }
}

async function asked(): Promise<string> {
  const passphrase = await askAtTerminal({ text: 'Passphrase of the backup:', echo: false });
  if (passphrase) return passphrase;
  throw new GryphusError('usage', 'The backup is encrypted.', {
    suggestions: ['Run this at a terminal, or name a file: --passphrase-file FILE'],
  });
}
