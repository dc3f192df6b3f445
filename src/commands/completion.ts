import { Flags } from '@oclif/core';
import type { Gryphus } from '../index.ts';
import { formatJobId } from '../job/ids.ts';
import { GryphusCommand, needed } from './command.ts';
import { completionScript, SHELLS } from './show/completion.ts';

export class Completion extends GryphusCommand {
  static override summary = 'Print the completion script for your shell.';
  static override examples = [
    'source <(<%= config.bin %> completion bash)   # in ~/.bashrc',
    '<%= config.bin %> completion zsh >~/.zfunc/_gryphus',
    '<%= config.bin %> completion fish >~/.config/fish/completions/gryphus.fish',
  ];
  static override args = {
    shell: needed('bash, zsh or fish', SHELLS),
  };
  static override flags = {
    // For the scripts themselves.
    words: Flags.option({ options: ['jobs', 'keys'] as const, hidden: true })(),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Completion);
    if (flags.words !== undefined) return this.#words(flags.words, flags);
    const shell = SHELLS.find((one) => one === args.shell) ?? 'bash';
    const { allCommands } = await import('./registry.ts');
    process.stdout.write(completionScript(shell, await allCommands()));
  }

  /** What a script offers at this moment: clusters and jobs of the queue, if it is there, or the configuration's keys. */
  async #words(what: 'jobs' | 'keys', flags: { readonly home?: string | undefined }): Promise<void> {
    if (what === 'keys') {
      const { Configuration } = await import('../index.ts');
      process.stdout.write(Configuration.keys.map((key) => `${key}\n`).join(''));
      return;
    }
    const jobs: string[] = [];
    const clusters = new Set<number>();
    const look = async (gryphus: Gryphus) => {
      for (const { cluster } of await gryphus.clusters()) clusters.add(cluster);
      for await (const { id } of gryphus.query({ attributes: [], limit: MOST_JOBS })) jobs.push(formatJobId(id));
    };
    // Without a running agent, nothing is offered and nothing started.
    await this.withGryphus(flags, look, false).catch(() => undefined);
    process.stdout.write([...clusters, ...jobs].map((word) => `${word}\n`).join(''));
  }
}

/** More would be of no use to choose from. */
const MOST_JOBS = 500;
