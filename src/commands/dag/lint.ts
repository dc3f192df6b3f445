import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import { counted } from '../../util/plain-text.ts';
import { GryphusCommand, prose, word } from '../command.ts';
import { problemLine } from '../show/dag.ts';
import { ORDER_FLAGS, requestOf } from './order.ts';

export class DagLint extends GryphusCommand {
  static override strict = false;
  static override summary = 'Check a DAG for errors.';
  static override description = prose(
    'Reports all findings with file and line: syntax errors, cycles with their nodes, unknown parents, missing submit files and directories, scripts that cannot be executed, unused VARS. Exit status 1 if there are errors, 0 if there are only warnings. `dag submit` refuses a DAG that has errors.',
  );
  static override examples = [
    '<%= config.bin %> dag lint diamond.dag',
    '<%= config.bin %> dag lint --usedagdir one/one.dag two/two.dag',
    '<%= config.bin %> dag lint diamond.dag --json',
  ];
  static override args = { files: word('DAG files, as for `dag submit`') };
  static override flags = {
    usedagdir: ORDER_FLAGS.usedagdir,
    config: ORDER_FLAGS.config,
    json: Flags.boolean({ summary: 'A JSON array of findings.' }),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(DagLint);
    const files = argv as string[];
    if (files.length === 0) throw new GryphusError('usage', 'Name a DAG file.');
    const { dagTools } = await import('../../index.ts');
    const { lintDagFiles } = await dagTools();
    const { nodes, problems } = lintDagFiles(requestOf(files, flags, []).order, process.cwd());
    if (flags.json) process.stdout.write(`${JSON.stringify(problems, undefined, 2)}\n`);
    else if (problems.length === 0)
      process.stdout.write(`${files.join(' ')}: ${counted(nodes, 'node')}, nothing wrong.\n`);
    else process.stdout.write(`${problems.map(problemLine).join('\n')}\n`);
    if (problems.some(({ severity }) => severity === 'error')) process.exitCode = 1;
  }
}
