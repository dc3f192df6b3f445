import { readFileSync } from 'node:fs';
import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import { reasonOf } from '../../util/plain-text.ts';
import type { DagSubmitted, DagSubmitRequest } from '../../index.ts';
import { goesOn, GryphusCommand, prose, word } from '../command.ts';
import { condorFiles, condorSubmitted, problemLine } from '../show/dag.ts';
import { CONDOR_SUBMIT_DAG, ORDER_FLAGS, requestOf } from './order.ts';

/** DAGMan's default verbosity. */
const LEVEL = 3;

export class DagSubmit extends GryphusCommand {
  static override strict = false;
  static override summary = 'Submit a DAG.';
  static override description =
    prose(`Checks DAG files (DAGMan's language) and submits the job that manages the DAG. That job survives crashes, and can be
held, released and removed like any other. HTCondor's options (-maxjobs 5) are understood.

With --wait the exit status is DAGMan's: 0 when all nodes succeeded, 1 when some failed, 2 when the DAG was removed.`);
  static override examples = [
    '<%= config.bin %> dag submit diamond.dag',
    '<%= config.bin %> dag submit -maxjobs 100 -batch-name tuesday sweep.dag --wait',
    '<%= config.bin %> dag submit -DoRescueFrom 2 diamond.dag',
  ];
  static override args = { files: word('DAG files; several run together as one DAG') };
  static override flags = {
    ...ORDER_FLAGS,
    no_submit: Flags.boolean({ aliases: ['no-submit'], summary: 'Only write NAME.dag.condor.sub.' }),
    wait: Flags.boolean({ summary: "Wait for the DAG to end; exit with DAGMan's exit status." }),
    json: Flags.boolean({ summary: 'Print JSON.' }),
    'as-condor': Flags.boolean({ hidden: true }),
  };

  static condor = CONDOR_SUBMIT_DAG;

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(DagSubmit);
    const files = argv as string[];
    if (files.length === 0) throw new GryphusError('usage', 'Name a DAG file.');
    const inserted = flags.insert_sub_file === undefined ? [] : linesOf(flags.insert_sub_file);
    const request = requestOf(files, flags, inserted);
    if (flags.debug !== undefined && flags.debug !== LEVEL) {
      process.stderr.write(`WARNING: --debug ${flags.debug}: the log contains what DAGMan writes at level ${LEVEL}.\n`);
    }
    if (flags.no_submit) return this.#writeOnly(request, flags['as-condor']);
    await this.withGryphus(flags, async (gryphus) => {
      const dags = await gryphus.dags();
      const submitted = await dags.submit(request);
      this.#say(submitted, files, flags);
      goesOn(`The DAG keeps running; \`gryphus dag status ${submitted.cluster}\` shows its progress.`);
      if (!flags.wait) return;
      const status = await dags.wait(submitted.cluster);
      if (status !== 0)
        process.stderr.write(
          `gryphus: DAG ${submitted.cluster} ended with ${status}.\n  → See \`gryphus dag status ${submitted.cluster}\`.\n`,
        );
      process.exitCode = status;
    });
  }

  async #writeOnly(request: DagSubmitRequest, asCondor: boolean): Promise<void> {
    const { dagTools } = await import('../../index.ts');
    const { readyDag } = await dagTools();
    const { file, warnings } = readyDag(request, process.cwd());
    for (const warning of warnings) process.stderr.write(`${problemLine(warning)}\n`);
    const own = `${file} is written; submit it with: gryphus submit ${file}\n`;
    process.stdout.write(asCondor ? condorFiles(file) : own);
  }

  #say(submitted: DagSubmitted, files: readonly string[], how: { readonly json: boolean; 'as-condor': boolean }): void {
    const { cluster, file, log, warnings } = submitted;
    for (const warning of warnings) process.stderr.write(`${problemLine(warning)}\n`);
    const [primary = ''] = files;
    if (how['as-condor']) process.stdout.write(condorSubmitted(submitted));
    else if (how.json) process.stdout.write(`${JSON.stringify({ cluster, file, log, warnings })}\n`);
    else process.stdout.write(`DAG ${primary} is submitted as cluster ${cluster}; its log is ${log}.\n`);
  }
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch (cause) {
    throw new GryphusError('input-missing', `Cannot read ${JSON.stringify(file)}: ${reasonOf(cause)}.`, {
      cause,
    });
  }
}
