import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import { GryphusCommand, needed, prose } from '../command.ts';
import { ORDER_FLAGS, requestOf } from './order.ts';

export class DagThrottle extends GryphusCommand {
  static override summary = 'Change the limits of a running DAG.';
  static override description = prose('Jobs that are already in the queue stay there; 0 means no limit.');
  static override examples = [
    '<%= config.bin %> dag throttle diamond.dag --maxjobs 20',
    '<%= config.bin %> dag throttle 12 --maxidle 100 --maxpost 2',
    '<%= config.bin %> dag throttle 12 --maxjobs 0',
  ];
  static override args = { dag: needed('a cluster or a DAG file') };
  static override flags = {
    maxjobs: ORDER_FLAGS.maxjobs,
    maxidle: ORDER_FLAGS.maxidle,
    maxpre: ORDER_FLAGS.maxpre,
    maxpost: ORDER_FLAGS.maxpost,
    maxhold: ORDER_FLAGS.maxhold,
    json: Flags.boolean({ summary: "A JSON object: the DAG's status when the command was given." }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(DagThrottle);
    const limits = requestOf([], flags, []).order.limits ?? {};
    if (Object.keys(limits).length === 0) {
      throw new GryphusError('usage', 'Name a limit: --maxjobs, --maxidle, --maxpre, --maxpost or --maxhold.');
    }
    await this.withGryphus(flags, async (gryphus) => {
      const dag = await (await gryphus.dags()).throttle(args.dag, limits);
      process.stdout.write(
        flags.json ? `${JSON.stringify(dag, undefined, 2)}\n` : `DAG ${dag.cluster} has new limits.\n`,
      );
    });
  }
}
