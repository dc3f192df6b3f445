import type { DagClient, DagStatus } from '../../index.ts';
import { GryphusCommand, needed, prose } from '../command.ts';

const args = { dag: needed('a cluster or a DAG file') };

abstract class Steer extends GryphusCommand {
  protected async steer(does: (dags: DagClient, name: string) => Promise<DagStatus>, said: string): Promise<void> {
    const { args, flags } = await this.parse(this.constructor as typeof DagHalt);
    await this.withGryphus(flags, async (gryphus) => {
      const { cluster } = await does(await gryphus.dags(), args.dag);
      process.stdout.write(`DAG ${cluster} ${said}.\n`);
    });
  }
}

export class DagHalt extends Steer {
  static override args = args;
  static override summary = 'Halt a DAG.';
  static override description = prose(
    'Its jobs and scripts run to their end, and no node begins until the DAG is resumed. As in DAGMan a file NAME.dag.halt says so; a DAG of which nothing runs any more ends, and its rescue file goes on.',
  );

  run(): Promise<void> {
    return this.steer((dags, name) => dags.halt(name), 'is halted');
  }
}

export class DagResume extends Steer {
  static override args = args;
  static override summary = 'Resume a halted DAG.';

  run(): Promise<void> {
    return this.steer((dags, name) => dags.resume(name), 'goes on');
  }
}

export class DagRm extends Steer {
  static override args = args;
  static override summary = 'Remove a DAG.';
  static override description = prose(
    "Its manager writes a rescue file, removes the nodes' jobs and runs the final node, if there is one.",
  );

  run(): Promise<void> {
    return this.steer((dags, name) => dags.remove(name), 'is marked for removal');
  }
}
