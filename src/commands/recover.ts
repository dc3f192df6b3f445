import { resolve } from 'node:path';
import { Args, Flags } from '@oclif/core';
import type { Recovery, RecoveryStep } from '../index.ts';
import { counted } from '../util/plain-text.ts';
import { askAtTerminal } from './ask.ts';
import { GryphusCommand, Out, prose } from './command.ts';

export class Recover extends GryphusCommand {
  static override strict = false;
  static override summary = 'Take over the jobs of an agent whose state directory was lost.';
  static override description =
    prose(`For a lost machine, disk or state directory: on the new machine, add the sites under the names that they had, then run this.
It asks each site what it holds of the lost agent and puts those jobs back into this queue under their ids. Those that wait or
run are followed, the results of those that have ended come home, and those that were never started are held. Results go to the
directory that a job was submitted from if it is there, and below \`recovered/\` otherwise.

The sites refuse the former state directory from then on, should its machine not be dead after all; running this there takes the
jobs back. It can be run again, for example when a site that did not answer does. Lost are jobs that no site had: those of the
pool, and those that were still waiting at home. Exit status 1 if a site did not answer or a job could not be taken over.`);
  static override examples = [
    '<%= config.bin %> site add cluster1 ssh://me@login.cluster1.example && <%= config.bin %> recover --dry-run',
    '<%= config.bin %> recover',
    '<%= config.bin %> recover cluster1 cluster2 --agent hCBlE8NRQY',
  ];
  static override args = { sites: Args.string({ description: 'the sites; default: all that are configured' }) };
  static override flags = {
    agent: Flags.string({ helpValue: '<id>', summary: 'The lost agent, if the sites hold jobs of several.' }),
    into: Flags.string({
      helpValue: '<dir>',
      summary: 'Where the results of jobs go whose own directory is gone.',
      default: 'recovered',
    }),
    'dry-run': Flags.boolean({ summary: 'Print what would be taken over, and change nothing.' }),
    json: Flags.boolean({ summary: 'A JSON object.' }),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Recover);
    const { Gryphus, recoverAgent } = await import('../index.ts');
    const dryRun = flags['dry-run'];
    const request = {
      sites: argv as string[],
      into: resolve(flags.into),
      dryRun,
      ask: askAtTerminal,
      ...(flags.agent === undefined ? {} : { agent: flags.agent }),
    };
    const recovery = await recoverAgent(request, this.openOptions(flags));
    if (!dryRun) await Gryphus.up(this.openOptions(flags));
    if (recovery.steps.some(({ outcome }) => outcome === 'unreachable')) process.exitCode = 1;
    if (flags.json) return void process.stdout.write(`${JSON.stringify(recovery, undefined, 2)}\n`);
    const out = new Out();
    for (const line of stepLines(recovery, dryRun)) out.line(line);
    await out.flush();
  }
}

/** What was done, one line for each attempt, and how many jobs are back. */
export function stepLines({ agent, steps }: Recovery, dryRun: boolean): readonly string[] {
  const taken = steps.filter(({ outcome }) => outcome === 'followed' || outcome === 'held').length;
  const verb = dryRun ? 'would be' : taken === 1 ? 'is' : 'are';
  return [
    ...steps.map(lineOf),
    `${counted(taken, 'job')} of agent ${agent} ${verb} back in the queue.`,
    ...dagLines(steps),
  ];
}

function lineOf(step: RecoveryStep): string {
  if (step.outcome === 'unreachable')
    return `${step.site}: did not answer: ${step.message} Run \`gryphus recover ${step.site}\` again when it does.`;
  const line = `${step.job.padEnd(12)} ${step.site}  ${step.state} there, ${step.message}`;
  return step.outcome !== 'left' && step.moved ? `${line}; results go to ${step.directory}` : line;
}

/** The managers of DAGs ran on the lost machine. */
function dagLines(steps: readonly RecoveryStep[]): string[] {
  const nodes = new Map<number, number>();
  for (const step of steps) {
    if (step.outcome === 'unreachable' || step.outcome === 'left' || step.dag === undefined) continue;
    nodes.set(step.dag, (nodes.get(step.dag) ?? 0) + 1);
  }
  return [...nodes].map(
    ([dag, count]) =>
      `${counted(count, 'job')} of DAG ${dag}: when done, submit the DAG again with its finished nodes marked DONE, or with its rescue file.`,
  );
}
