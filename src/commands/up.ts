import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Flags } from '@oclif/core';
import { GryphusCommand, prose, terminalWidth } from './command.ts';
import { sayFetching } from './fetching.ts';
import { statusLines } from './show/status.ts';
import { systemdUnit } from './show/systemd.ts';

export class Up extends GryphusCommand {
  static override summary = 'Start the Scheduler and its Redis, if they are not running.';
  static override description =
    prose(`Every command that needs them does the same. --systemd prints a user unit that starts them when you log in, or at
boot if you linger, with the PATH and the directories of the shell in which you type this;
\`systemctl --user enable --now gryphus\` turns it on.`);
  static override examples = [
    '<%= config.bin %> up',
    'mkdir -p ~/.config/systemd/user && <%= config.bin %> up --systemd >~/.config/systemd/user/gryphus.service',
  ];
  static override flags = {
    systemd: Flags.boolean({ summary: 'Print a systemd user unit; start nothing.' }),
    install: Flags.boolean({
      summary:
        "As root, where there is no Redis: install the system's package instead of fetching one for Gryphus alone.",
      exclusive: ['systemd'],
    }),
    json: Flags.boolean({ summary: 'A JSON object.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Up);
    if (flags.systemd) {
      const program = fileURLToPath(new URL('../bin/gryphus.js', import.meta.url));
      const home = flags.home ?? process.env['GRYPHUS_HOME'];
      const env = { ...process.env, GRYPHUS_HOME: home && resolve(home) };
      process.stdout.write(systemdUnit(process.execPath, program, env));
      return;
    }
    const { Gryphus } = await import('../index.ts');
    const status = await Gryphus.up({
      ...this.openOptions(flags),
      install: flags.install,
      onFetch: sayFetching(),
    });
    const lines = flags.json ? [JSON.stringify(status, undefined, 2)] : statusLines(status, [], terminalWidth());
    process.stdout.write(`${lines.join('\n')}\n`);
  }
}
