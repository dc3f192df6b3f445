import { type DagGraph, FLAG, KIND } from './graph.ts';
import { counted } from '../../util/plain-text.ts';
import { directoryOf, inDirectory } from './names.ts';
import { Complaint, type DagPlace, type Problem } from './problem.ts';
import type { DagSettings } from './settings.ts';
import { type ApplyContext, applyModifier } from './apply.ts';
import { type Command, type DotSpec, type NodeCommand, type NodeStatusSpec, wordOf } from './commands.ts';
import { applyConnect, applyDepend, type JoinNodes } from './depend.ts';
import { NodeTable } from './node-table.ts';
import { eachCommand } from './parse.ts';
import { liftSplices, newScope, type DagScope, throttleOf } from './scope.ts';
import type { DagSource } from './source.ts';
import { DEFINITIONS, FOR_THE_MANAGER, isAllNodes, mentionsTheManager, MODIFIERS } from './syntax.ts';

const DAG_SUBMIT_SUFFIX = '.condor.sub';

/** The deepest that splices and includes may nest. */
const MOST_DEEP = 200;
/** The most splices and includes in one DAG: files that include two others at every level would exhaust memory. */
const MOST_FILES = 200_000;

/** Only a FINAL node becomes a sub-DAG merely because its submit file's name says so. */
function isNestedFinal(command: NodeCommand): boolean {
  return command.type === 'FINAL' && command.inline === undefined && command.submit.endsWith(DAG_SUBMIT_SUFFIX);
}

/** The file being read, its directory, and the scope that it adds to. */
interface Reading {
  readonly file: string;
  readonly dir: string;
  readonly scope: DagScope;
  /** The prefix of node names when there are several DAG files: `0.` for the first, and so on. */
  readonly munge: string;
}

/**
 * Builds one graph from DAG files. Each file is read twice, nodes and splices first, so that a command may come before
 * the node it is about; what an INCLUDE brings in is known from its line on.
 */
export class Builder {
  private readonly source: DagSource;
  private readonly settings: DagSettings;
  private readonly report: (problem: Problem) => void;
  private readonly useDagDir: boolean;
  private readonly table = new NodeTable();
  private readonly root = newScope('', 'root');
  private readonly joins: JoinNodes;
  private readonly open = new Set<string>();
  private inlines = 0;
  private filesRead = 0;
  /** Where to report problems of the DAG as a whole. */
  private whole: DagPlace | undefined;
  private dot: DotSpec | undefined;
  private nodeStatus: NodeStatusSpec | undefined;
  private jobstateLog: string | undefined;

  constructor(source: DagSource, settings: DagSettings, report: (problem: Problem) => void, useDagDir: boolean) {
    this.source = source;
    this.settings = settings;
    this.report = report;
    this.useDagDir = useDagDir;
    this.joins = { next: 0, wanted: settings.DAGMAN_USE_JOIN_NODES };
  }

  /** Adds one of the DAG's own files, named relative to the DAG manager's directory. */
  addFile(file: string, dir: string, text: string, munge: string): void {
    this.whole = this.whole ?? { file, line: 0 };
    this.guarded(file, () => this.twice(text, { file, dir, scope: this.root, munge }));
  }

  finish(priority: number): DagGraph {
    const whole = this.whole ?? { file: '', line: 0 };
    for (const throttle of this.root.throttles.values()) {
      const place = throttle.place ?? whole;
      const warn = this.warner(place, undefined);
      if (throttle.nodes < 1) {
        warn(
          2,
          `category ${throttle.name} has no assigned nodes, so the throttle setting (${throttle.limit}) will have no effect`,
        );
      }
      if (throttle.limit === 0 && throttle.nodes > 0) {
        this.report({
          ...place,
          severity: 'error',
          command: 'MAXJOBS',
          message: `category ${throttle.name} has ${counted(throttle.nodes, 'node')} and lets none of them run`,
          remedy: 'Give it a limit of 1 or more, or remove its MAXJOBS.',
        });
      }
      if (throttle.limit < 0) warn(2, `category ${throttle.name} has no throttle value set`);
    }
    const { table, root } = this;
    if (priority !== 0) {
      table.priority.forEach((own, node) => {
        if (table.kind[node] !== KIND.service) table.priority[node] = own + priority;
      });
    }
    return {
      ...table.finish(),
      byName: root.names,
      order: Int32Array.from(root.nodes),
      descriptions: root.descriptions,
      final: root.final,
      provisioner: root.provisioner,
      services: root.services,
      dot: this.dot,
      nodeStatus: this.nodeStatus,
      jobstateLog: this.jobstateLog,
    };
  }

  /** At the end of a file, the nodes of its splices join its scope; this gives the order of all nodes. */
  private twice(text: string, reading: Reading): void {
    const { file } = reading;
    eachCommand(text, file, DEFINITIONS, this.report, (command, line) => {
      const place = { file, line };
      try {
        this.define(command, reading, place);
      } catch (thrown) {
        this.complain(thrown, command, place);
      }
    });
    const place = { file, line: 0 };
    const context: ApplyContext = {
      table: this.table,
      scope: reading.scope,
      appendVars: this.settings.DAGMAN_DEFAULT_APPEND_VARS,
      fullName: (name) => (reading.munge === '' || isAllNodes(name) ? name : reading.munge + name),
      warn: (strictness, message) => this.warner({ ...place }, undefined)(strictness, message),
    };
    eachCommand(
      text,
      file,
      MODIFIERS,
      this.report,
      (command, line) => {
        place.line = line;
        try {
          this.apply(command, reading, context, place);
        } catch (thrown) {
          this.complain(thrown, command, place);
        }
      },
      'skip',
    );
    liftSplices(reading.scope, this.warner({ file, line: 0 }, undefined));
  }

  private complain(thrown: unknown, command: Command, place: DagPlace): void {
    if (!(thrown instanceof Complaint)) throw thrown;
    const { message, remedy } = thrown;
    const about = wordOf(command);
    this.report({
      ...place,
      severity: 'error',
      message,
      ...(about === undefined ? {} : { command: about }),
      ...(remedy === undefined ? {} : { remedy }),
    });
  }

  /** The first pass: definitions. */
  private define(command: Command, reading: Reading, place: DagPlace): void {
    const { scope } = reading;
    if (command.cmd === 'node') this.addNode(command, reading, place);
    else if (command.cmd === 'splice') this.addSplice(command, reading);
    else if (command.cmd === 'description') {
      if (scope.descriptions.has(command.name)) {
        const warn = this.warner(place, 'SUBMIT_DESCRIPTION');
        warn(4, `The name ${command.name} is used again; the last description counts`);
      }
      scope.descriptions.set(command.name, command.text);
    } else if (command.cmd === 'reject') throw new Complaint(`DAG marked as rejected at ${place.file}:${place.line}`);
    else if (command.cmd === 'dot') {
      // Of several DOT commands the last wins, as in DAGMan; of status files and jobstate logs the first.
      if (this.first(undefined, command.dot.file, reading, place, 'DOT')) this.dot = command.dot;
    } else if (command.cmd === 'node-status') {
      const { status } = command;
      if (this.first(this.nodeStatus, status.file, reading, place, 'NODE_STATUS_FILE')) this.nodeStatus = status;
    } else if (command.cmd === 'jobstate') {
      if (this.first(this.jobstateLog, command.file, reading, place, 'JOBSTATE_LOG')) this.jobstateLog = command.file;
    }
  }

  /** The second pass: commands about nodes. */
  private apply(command: Command, reading: Reading, context: ApplyContext, place: DagPlace): void {
    if (command.cmd === 'include') this.include(command.file, reading);
    else if (command.cmd === 'depend') applyDepend(command, context, this.joins, place);
    else if (command.cmd === 'connect') applyConnect(command, context);
    else if (command.cmd === 'maxjobs') this.setLimit(command.category, command.limit, context, place);
    else if ('node' in command) applyModifier(command, context);
  }

  private setLimit(name: string, limit: number, context: ApplyContext, { file, line }: DagPlace): void {
    const throttle = throttleOf(context.scope, name);
    if (throttle.limit >= 0 && throttle.limit !== limit) {
      context.warn(3, `new maxjobs value ${limit} for category ${name} overrides old value ${throttle.limit}`);
    }
    throttle.limit = limit;
    throttle.place = { file, line };
  }

  private addNode(command: NodeCommand, reading: Reading, place: DagPlace): void {
    const { scope, munge } = reading;
    const name = munge + command.name;
    if (!this.settings.DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS && command.name.includes('+')) {
      throw new Complaint(
        'Node name contains illegal character',
        'A + separates the name of a splice from its node; leave it out.',
      );
    }
    if (scope.names.has(name) || scope.splices.has(name))
      throw new Complaint(`Node ${name} is already defined in the DAG`);
    if (this.useDagDir && command.dir !== undefined) {
      throw new Complaint('Node DIR <directory> sub-command can not be used with -UseDagDir');
    }
    if (command.type === 'FINAL' && scope.final !== undefined)
      throw new Complaint('Final node is already defined in the DAG');
    if (command.type === 'FINAL' && scope !== this.root)
      throw new Complaint('Spliced DAGs can not contain a final node');
    if (command.type === 'PROVISIONER' && (scope.provisioner !== undefined || scope !== this.root)) {
      throw new Complaint('A DAG has at most one provisioner node, and a spliced DAG none');
    }
    let flags = command.noop ? FLAG.noop : 0;
    if (command.done && (command.type === 'JOB' || command.type === 'SUBDAG')) flags |= FLAG.done;
    else if (command.done)
      this.warner(place, command.type)(4, `${command.type} node ${name} can not be marked as DONE`);
    const submit = this.submitOf(command, reading, name);
    if (isNestedFinal(command)) flags |= FLAG.subdag;
    const directory = command.dir === undefined ? reading.dir : inDirectory(reading.dir, command.dir);
    const node = this.table.add(scope.prefix + name, command.type, submit, directory, flags, place);
    scope.names.set(name, node);
    if (this.table.kind[node] === KIND.service) scope.services.push(node);
    else scope.nodes.push(node);
    if (command.type === 'FINAL') scope.final = node;
    if (command.type === 'PROVISIONER') scope.provisioner = node;
  }

  /** The name of the inline description, or else what the command names. */
  private submitOf(command: NodeCommand, reading: Reading, name: string): string {
    if (command.inline !== undefined) {
      const submit = `${name}-InlineDesc${this.inlines++}`;
      reading.scope.descriptions.set(submit, command.inline);
      return submit;
    }
    if (isNestedFinal(command)) return command.submit.slice(0, -DAG_SUBMIT_SUFFIX.length);
    if (command.type !== 'SUBDAG' && command.submit.endsWith(DAG_SUBMIT_SUFFIX)) {
      throw new Complaint(
        `The use of the ${command.type} keyword for nested DAGs is prohibited`,
        `Write SUBDAG EXTERNAL ${command.name} ${command.submit.slice(0, -DAG_SUBMIT_SUFFIX.length)}.`,
      );
    }
    return command.submit;
  }

  private addSplice(command: Extract<Command, { readonly cmd: 'splice' }>, reading: Reading): void {
    const { scope, munge } = reading;
    const name = munge + command.name;
    if (scope.names.has(name) || scope.splices.has(name)) {
      throw new Complaint(`Splice name ${name} is already defined in the DAG`);
    }
    const inner = newScope(`${scope.prefix}${name}+`, `splice ${name}`);
    const dir = command.dir === undefined ? reading.dir : inDirectory(reading.dir, command.dir);
    this.readInto(command.file, { dir, scope: inner, munge }, 'Recursive splicing detected');
    inner.initial = inner.nodes.filter((node) => (this.table.parents[node] ?? 0) === 0);
    inner.terminal = inner.nodes.filter((node) => (this.table.children[node] ?? 0) === 0);
    scope.splices.set(name, inner);
  }

  private include(file: string, reading: Reading): void {
    this.readInto(file, reading, 'Recursive file inclusion detected');
  }

  private readInto(file: string, into: Omit<Reading, 'file'>, recursive: string): void {
    // Reported once, or every line of the files above would repeat it.
    if (this.filesRead > MOST_FILES) return;
    const path = inDirectory(into.dir, file);
    if (this.open.has(this.source.absolute(path))) throw new Complaint(recursive);
    if (this.open.size > MOST_DEEP) {
      const remedy = 'Put some of these files together, or make a sub-DAG (SUBDAG EXTERNAL) of one of them.';
      throw new Complaint(`Splices and included files are nested more than ${MOST_DEEP} deep`, remedy);
    }
    if (++this.filesRead > MOST_FILES) {
      const remedy = 'Make sub-DAGs (SUBDAG EXTERNAL) of parts of it.';
      throw new Complaint(`The DAG has more than ${MOST_FILES} splices and included files`, remedy);
    }
    const text = this.source.read(path);
    if (text === undefined) throw new Complaint(`Failed to open ${file}: Provided file path does not exist`);
    const dir = this.useDagDir ? directoryOf(path) : into.dir;
    this.guarded(path, () => this.twice(text, { ...into, dir, file: path }));
    this.warnOfTheManagers(text, path);
  }

  /** Commands about the manager's own job only take effect in the DAG's own files. */
  private warnOfTheManagers(text: string, file: string): void {
    if (!mentionsTheManager(text)) return;
    const drop = (): void => undefined;
    const take = (command: Command, line: number): void => {
      const warn = this.warner({ file, line }, undefined);
      warn(4, `${wordOf(command) ?? ''} has no effect in a splice or an included file`);
    };
    eachCommand(text, file, FOR_THE_MANAGER, drop, take, 'skip');
  }

  /** Returns false if the file is already being read. */
  private guarded(path: string, read: () => void): boolean {
    const absolute = this.source.absolute(path);
    if (this.open.has(absolute)) return false;
    this.open.add(absolute);
    read();
    this.open.delete(absolute);
    return true;
  }

  private first(had: unknown, file: string, reading: Reading, place: DagPlace, word: string): boolean {
    const warn = this.warner(place, word);
    if (reading.scope !== this.root) {
      warn(4, `${word} in a splice has no effect`);
      return false;
    }
    if (had !== undefined) warn(3, `Attempt to set ${word} to ${file} does not override the existing value`);
    return had === undefined;
  }

  /** Warnings at or below `strictness` become errors (DAGMAN_USE_STRICT). */
  private warner(place: DagPlace, command: string | undefined): (strictness: number, message: string) => void {
    return (strictness, message) =>
      this.report({
        ...place,
        severity: this.settings.DAGMAN_USE_STRICT >= strictness ? 'error' : 'warning',
        message,
        ...(command === undefined ? {} : { command }),
      });
  }
}
