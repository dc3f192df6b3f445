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

  async run(): Promise<void> {
    const { args } = await this.parse(Completion);
    const shell = SHELLS.find((one) => one === args.shell) ?? 'bash';
    const { COMMANDS } = await import('./registry.ts');
    process.stdout.write(completionScript(shell, COMMANDS));
  }
}
