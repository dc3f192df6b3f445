import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { didYouMean } from '../util/did-you-mean.ts';
import { GryphusCommand, prose, terminalWidth, word } from './command.ts';
import { tableLines } from './show/table.ts';

export class ConfigCommand extends GryphusCommand {
  static override summary = 'Show or change the configuration.';
  static override description =
    prose(`Without arguments, lists every key with its value and where the value comes from. With KEY, prints its value. With KEY and
VALUE, sets it in config.toml; the rest of the file stays as you wrote it.`);
  static override examples = [
    '<%= config.bin %> config',
    '<%= config.bin %> config notify.email me@example.org',
    `<%= config.bin %> config alarms.credential '["7d", "1d"]'`,
    '<%= config.bin %> config --docs',
    '<%= config.bin %> config --docs pool.cpus',
  ];
  static override args = {
    key: word('a key, such as notify.email'),
    value: word('its new value'),
  };
  static override flags = {
    docs: Flags.boolean({ summary: 'Describe every key, including those of sites; or KEY.' }),
    path: Flags.boolean({ summary: 'Print only the path of config.toml.' }),
    unset: Flags.boolean({ summary: 'Remove KEY from the file.' }),
    json: Flags.boolean({ summary: 'A JSON object.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConfigCommand);
    const { Configuration } = await import('../index.ts');
    const { keys } = Configuration;
    const configuration = await this.configuration(flags);
    const { configFile } = configuration.paths;
    if (flags.path) return void process.stdout.write(`${configFile}\n`);
    if (flags.docs) {
      const docs = Configuration.docs(args.key);
      if (docs !== '') return void process.stdout.write(docs);
    }
    if (flags.unset && args.key === undefined) throw new GryphusError('usage', 'Name the key to remove.');
    if (args.key !== undefined && !keys.includes(args.key)) {
      const near = didYouMean(args.key, keys);
      throw new GryphusError('usage', `There is no key '${args.key}'.`, {
        suggestions: [near ? `Did you mean '${near}'?` : 'See `gryphus config`.'],
      });
    }
    if (args.key !== undefined && (args.value !== undefined || flags.unset)) {
      await configuration.set(args.key, flags.unset ? undefined : args.value);
      return;
    }
    const settings: Readonly<Record<string, unknown>> = await configuration.settings();
    if (flags.json) {
      const shown = args.key === undefined ? settings : (settings[args.key] ?? null);
      return void process.stdout.write(`${JSON.stringify(shown, undefined, 2)}\n`);
    }
    if (args.key !== undefined) return void process.stdout.write(`${show(settings[args.key])}\n`);
    const own = await configuration.settingsInFile();
    const rows = keys.map((key) => [key, show(settings[key]), own.has(key) ? configFile : 'default']);
    process.stdout.write(
      `${tableLines(['KEY', 'VALUE', 'FROM'], rows, terminalWidth(), { gives: ['FROM', 'VALUE'] }).join('\n')}\n`,
    );
  }
}

function show(value: unknown): string {
  if (value === undefined) return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
