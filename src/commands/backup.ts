import { resolve } from 'node:path';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { askAtTerminal } from './ask.ts';
import { GryphusCommand, needed, prose } from './command.ts';
import { PASSPHRASE_FLAGS, passphraseIn } from './passphrase.ts';

export class Backup extends GryphusCommand {
  static override summary = 'Write the queue, its history and its configuration to a file.';
  static override description =
    prose(`Everything may go on meanwhile: the backup shows the queue as it was at one moment. FILE is readable by you alone; as it
contains the environment of jobs and the keys of the pool, encrypt it where others keep it. \`gryphus restore\` puts it back.

Input files and results are not in it, and neither are the sandboxes of jobs that run on this machine.`);
  static override examples = [
    '<%= config.bin %> backup ~/gryphus.backup',
    '<%= config.bin %> backup --encrypt /mnt/stick/gryphus.backup',
    '<%= config.bin %> backup --passphrase-file ~/.backup-passphrase /srv/backups/gryphus',
  ];
  static override args = { file: needed('the file to write') };
  static override flags = {
    ...PASSPHRASE_FLAGS,
    encrypt: Flags.boolean({ summary: 'Encrypt it with a passphrase, which is asked for.' }),
    json: Flags.boolean({ summary: 'A JSON object.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Backup);
    const { backupAgent } = await import('../index.ts');
    const given = flags['passphrase-file'];
    const passphrase = given === undefined ? (flags.encrypt ? await chosen() : undefined) : passphraseIn(given);
    const file = resolve(args.file);
    const report = await backupAgent(
      { file, ...(passphrase === undefined ? {} : { passphrase }) },
      this.openOptions(flags),
    );
    if (flags.json) process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
    else process.stdout.write(`Backup of agent ${report.agent} written to ${file} (${report.bytes} bytes).\n`);
  }
}

async function chosen(): Promise<string> {
  const first = await askAtTerminal({ text: 'Passphrase for the backup:', echo: false });
  if (!first)
    throw new GryphusError('usage', 'An encrypted backup needs a passphrase.', {
      suggestions: ['Run this at a terminal, or name a file: --passphrase-file FILE'],
    });
  if ((await askAtTerminal({ text: 'The same again:', echo: false })) !== first)
    throw new GryphusError('usage', 'The two passphrases differ.');
  return first;
}
