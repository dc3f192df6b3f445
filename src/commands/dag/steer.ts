import { Flags } from '@oclif/core';
import type { DagClient, DagStatus } from '../../index.ts';
import { GryphusCommand, needed, prose } from '../command.ts';

const args = { dag: needed('a cluster or a DAG file') };
const flags = { json: Flags.boolean({ summary: "A JSON object: the DAG's status when the command was given." }) };

abstract class Steer extends GryphusCommand {
  protected async steer(does: (dags: DagClient, name: string) => Promise<DagStatus>, said: string): Promise<void> {
    const { args, flags } = await this.parse(this.constructor as typeof DagHalt);
    await this.withGryphus(flags, async (gryphus) => {
      const dag = await does(await gryphus.dags(), args.dag);
      process.stdout.write(flags.json ? `${JSON.stringify(dag, undefined, 2)}\n` : `DAG ${dag.cluster} ${said}.\n`);
    });
  }
}

export class DagHalt extends Steer {
  static override args = args;
  static override flags = flags;
  static override summary = 'Halt a DAG.';
  static override description = prose(
    'Running jobs and scripts finish, and no node starts until the DAG is resumed. As in DAGMan, the file NAME.dag.halt marks it; a halted DAG ends when nothing runs any more; submitted again, it continues from its rescue file.',
  );
  static override examples = ['<%= config.bin %> dag halt 12', '<%= config.bin %> dag halt diamond.dag'];

  run(): Promise<void> {
    return this.steer((dags, name) => dags.halt(name), 'is halted');
  }
}

export class DagResume extends Steer {
  static override args = args;
  static override flags = flags;
  static override summary = 'Resume a halted DAG.';
  static override description = prose('Ready nodes start at once; the file NAME.dag.halt is deleted.');
  static override examples = ['<%= config.bin %> dag resume 12', '<%= config.bin %> dag resume diamond.dag'];

  run(): Promise<void> {
    return this.steer((dags, name) => dags.resume(name), 'is resumed');
  }
}

export class DagRm extends Steer {
  static override args = args;
  static override flags = flags;
  static override summary = 'Remove a DAG.';
  static override description = prose(
    "Its manager writes a rescue file, removes the nodes' jobs and runs the final node, if there is one. Submitting the same DAG file again continues from the rescue file.",
  );
  static override examples = ['<%= config.bin %> dag rm 12', '<%= config.bin %> dag rm diamond.dag'];

  run(): Promise<void> {
    return this.steer((dags, name) => dags.remove(name), 'is marked for removal');
  }
}
