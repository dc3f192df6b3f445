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
    'All findings, each with file and line: what the language refuses, cycles with their nodes, unknown parents, submit files and directories that are missing, scripts that cannot be executed, VARS that nothing uses. Exit status 1 with an error, 0 with warnings only. `dag submit` refuses what has errors.',
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
