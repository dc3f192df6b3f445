import type { DagCommand, DagEvent } from '../engine/messages.ts';
import { type DagGraph, directoryOf, nameOf } from '../language/graph.ts';
import type { ScriptType } from '../language/commands.ts';
import { inDirectory } from '../language/names.ts';
import type { DagWorld, Happening } from './world.ts';

interface Running {
  readonly node: number;
  readonly type: ScriptType;
  readonly debugFile: string | undefined;
  readonly argv: readonly string[];
}

/** The scripts in progress: which node each run belongs to, and their DEBUG files. */
export class ScriptRuns {
  private readonly world: DagWorld;
  private readonly dag: DagGraph;
  private readonly running = new Map<number, Running>();
  private next = 1;

  constructor(world: DagWorld, dag: DagGraph) {
    this.world = world;
    this.dag = dag;
  }

  start(command: Extract<DagCommand, { readonly do: 'script' }>): void {
    const run = this.next++;
    const { node, type, argv, debug } = command;
    const directory = directoryOf(this.dag, node);
    const debugFile = debug === undefined ? undefined : inDirectory(directory, debug.file);
    this.running.set(run, { node, type, debugFile, argv });
    this.world.startScript({ node: nameOf(this.dag, node), type, run, argv, directory, capture: debug?.stream });
  }

  /** Converts the end of a run into an event; none if the run is unknown. */
  ended(happening: Extract<Happening, { readonly is: 'script-ended' }>): readonly DagEvent[] {
    const script = this.running.get(happening.run);
    if (script === undefined) return [];
    this.running.delete(happening.run);
    const { node, type, debugFile, argv } = script;
    const { end, notStarted } = happening;
    if (debugFile !== undefined) {
      const how = 'code' in end ? `ExitCode=${end.code}` : `Signal=${end.signal}`;
      const when = Math.floor(this.world.now() / 1000);
      const header = `*** Node=${nameOf(this.dag, node)} Type=${type} ${how} Completion=${when} Cmd='${argv.join(' ')}'\n`;
      this.world.files.append(debugFile, header + (happening.output ?? ''));
    }
    return [{ is: 'script-ended', node, type, end, ...(notStarted === undefined ? {} : { notStarted }) }];
  }
}
