import { Flags } from '@oclif/core';
import type { PresenceView } from '../../index.ts';
import { GryphusCommand, interruptible, prose, terminalWidth } from '../command.ts';
import { idleLines } from '../show/idle.ts';

export class PoolIdle extends GryphusCommand {
  static override summary = "Show the signs of this machine's owner, each with its age; redrawn every second.";
  static override description =
    prose(`The smallest idle time counts (KeyboardIdle). A source that sees nothing on this machine shows why. Without a
terminal, or with --once, prints one table.`);
  static override examples = ['<%= config.bin %> pool idle', '<%= config.bin %> pool idle --once'];
  static override flags = {
    once: Flags.boolean({ summary: 'Print one table and exit.' }),
    json: Flags.boolean({ summary: 'A JSON object, once.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(PoolIdle);
    const { signal } = interruptible();
    const owner = await (await this.configuration(flags)).machineOwner();
    const once = flags.once || flags.json || !process.stdout.isTTY;
    for await (const view of owner.idle(signal)) {
      process.stdout.write(flags.json ? `${JSON.stringify(view, undefined, 2)}\n` : this.#page(view, once));
      if (once) return;
    }
    process.exitCode = 0;
  }

  #page(view: PresenceView, once: boolean): string {
    return `${once ? '' : '\u001b[H\u001b[J'}${idleLines(view, terminalWidth()).join('\n')}\n`;
  }
}
