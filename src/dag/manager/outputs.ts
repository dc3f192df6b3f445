import type { Engine } from '../engine/engine.ts';
import type { DagCommand } from '../engine/messages.ts';
import { EXIT } from '../engine/status.ts';
import { dotText } from '../files/dot.ts';
import { internalLine, jobstateLine, jobTag } from '../files/jobstate.ts';
import { type MetricsFacts, metricsText } from '../files/metrics.ts';
import { nodeStatusText } from '../files/node-status.ts';
import { descriptionOf, directoryOf, nameOf } from '../language/graph.ts';
import { inDirectory } from '../language/names.ts';
import { rescueName, rescueText, savePointPath, savePointText } from '../rescue.ts';
import { logTime } from '../times.ts';
import type { DagFiles, JobLogEvent } from './world.ts';

/** The fewest seconds between two writes of an ALWAYS-UPDATE status file: how often DAGMan reads its log. */
const LEAST_UPDATE = 5;

export interface OutputPlan {
  readonly dagFiles: readonly string[];
  readonly primary: string;
  /** The path of `.dagman.out`. */
  readonly log: string;
  readonly nodesLog: string;
  readonly logEvent: (event: JobLogEvent) => string;
  /** The number of the next rescue file. */
  readonly nextRescue: number;
}

/**
 * The files of a running DAG: `.dagman.out`, `.nodes.log` and the jobstate log are appended to; the node status, DOT,
 * rescue, save and metrics files are rewritten. Lines are buffered until `flush`.
 */
export class Outputs {
  private readonly files: DagFiles;
  private readonly engine: Engine;
  private readonly plan: OutputPlan;
  private out = '';
  private jobstate = '';
  private nodes = '';
  private dotSuffix = 0;
  private dotCounts = '';
  private statusAt = Number.NEGATIVE_INFINITY;
  private statusOutdated = true;
  private readonly tags = new Map<number, string>();

  constructor(files: DagFiles, engine: Engine, plan: OutputPlan) {
    this.files = files;
    this.engine = engine;
    this.plan = plan;
  }

  /** The sizes of the files that are appended to. */
  sizes(): readonly number[] {
    return this.growing().map((file) => (file === undefined ? 0 : this.files.size(file)));
  }

  /** Truncates these files to earlier sizes because their last lines will be written again. */
  cutBack(sizes: readonly number[]): void {
    this.growing().forEach((file, i) => {
      const size = sizes[i] ?? 0;
      if (file !== undefined && this.files.size(file) > size) this.files.truncate(file, size);
    });
  }

  say(at: number, text: string): void {
    this.out += `${logTime(at)} ${text}\n`;
  }

  internal(at: number, what: string): void {
    if (this.engine.core.dag.jobstateLog !== undefined) this.jobstate += internalLine(at, what);
  }

  logJob(event: JobLogEvent): void {
    this.nodes += this.plan.logEvent(event);
  }

  /** Takes the lines for files out of `commands`. */
  take(commands: readonly DagCommand[], at: number): void {
    const { dag } = this.engine.core;
    for (const command of commands) {
      if (command.do === 'say') this.say(at, command.text);
      else if (command.do === 'jobstate') {
        const name = nameOf(dag, command.node);
        this.jobstate += jobstateLine(at, name, command.word, command.id, this.tag(command.node), command.sequence);
      } else if (command.do === 'log') {
        this.logJob({ about: 'node', at, node: nameOf(dag, command.node), event: command.event });
      } else if (command.do === 'rescue') this.writeRescue(at);
      else if (command.do === 'save-point') this.writeSavePoint(command.node, at);
    }
    this.statusOutdated ||= commands.length > 0;
  }

  flush(): void {
    const { jobstateLog } = this.engine.core.dag;
    if (this.out !== '') this.files.append(this.plan.log, this.out);
    if (this.jobstate !== '' && jobstateLog !== undefined) this.files.append(jobstateLog, this.jobstate);
    if (this.nodes !== '') this.files.append(this.plan.nodesLog, this.nodes);
    this.out = '';
    this.jobstate = '';
    this.nodes = '';
  }

  /**
   * Writes the node status file if it is due. `last`: the DAG ends now. Returns when to check again (Unix milliseconds)
   * if there is something left to show.
   */
  writeStatus(now: number, last: boolean): number | undefined {
    const { core } = this.engine;
    const { nodeStatus } = core.dag;
    if (nodeStatus === undefined) return undefined;
    const ended = core.exitCode !== undefined;
    if (!nodeStatus.alwaysUpdate && !this.statusOutdated && !ended) return undefined;
    const due = this.statusAt + nodeStatus.minUpdate * 1000;
    if (!last && now < due) return this.statusOutdated || nodeStatus.alwaysUpdate ? due : undefined;
    const removed = ended && core.dagStatus === 4;
    this.files.write(nodeStatus.file, nodeStatusText(core, this.plan.dagFiles, now, removed ? 'removed' : 'here'));
    this.statusAt = now;
    this.statusOutdated = false;
    return nodeStatus.alwaysUpdate && !ended ? now + Math.max(nodeStatus.minUpdate, LEAST_UPDATE) * 1000 : undefined;
  }

  /** The manager stops, to resume later. */
  stopped(now: number): void {
    const { core } = this.engine;
    const { nodeStatus } = core.dag;
    if (nodeStatus !== undefined) {
      this.files.write(nodeStatus.file, nodeStatusText(core, this.plan.dagFiles, now, 'held'));
      this.statusOutdated = true;
    }
    this.internal(now, `DAGMAN_FINISHED ${EXIT.restart}`);
    this.flush();
  }

  /** Writes the DOT file: once at the start and, with UPDATE, whenever a count of nodes has changed. */
  writeDot(now: number, first: boolean): void {
    const { core } = this.engine;
    const { dot } = core.dag;
    if (dot === undefined) return;
    const { done, pre, submitted, post, failed, futile } = core.counts;
    const counts = [done, pre, submitted, post, failed, futile].join(' ');
    if (!first && (!dot.update || counts === this.dotCounts)) return;
    this.dotCounts = counts;
    let path = dot.file;
    if (!dot.overwrite) {
      while (this.files.exists(`${dot.file}.${this.dotSuffix}`)) this.dotSuffix++;
      path = `${dot.file}.${this.dotSuffix++}`;
    }
    const header = dot.include === undefined ? undefined : this.files.read(dot.include);
    const include = dot.include === undefined || header === undefined ? undefined : { file: dot.include, text: header };
    this.files.write(path, dotText(core, now, include));
  }

  writeMetrics(facts: MetricsFacts): void {
    const file = `${this.plan.primary}.metrics`;
    this.files.write(file, metricsText(this.engine.core, facts));
    this.say(facts.end, `Wrote metrics file ${file}.`);
  }

  private writeRescue(at: number): void {
    const { primary, dagFiles, nextRescue } = this.plan;
    const name = rescueName(primary, dagFiles.length > 1, nextRescue);
    this.say(at, `Writing Rescue DAG to ${name}...`);
    this.files.keep(name, rescueText(this.engine.core, primary, at));
  }

  private writeSavePoint(node: number, at: number): void {
    const { dag } = this.engine.core;
    const path = savePointPath(this.plan.primary, dag.savePoint.get(node) ?? '');
    const text = savePointText(this.engine.core, node, at);
    const old = this.files.read(path);
    if (old === text) return;
    if (old !== undefined) this.files.rename(path, `${path}.old`);
    this.say(at, `Writing Save File to ${path}...`);
    this.files.keep(path, text);
  }

  private tag(node: number): string {
    const { dag } = this.engine.core;
    const key = dag.submit[node] ?? 0;
    let tag = this.tags.get(key);
    if (tag === undefined) {
      const description = descriptionOf(dag, node);
      const text =
        description.is === 'text'
          ? description.text
          : description.is === 'file'
            ? this.files.read(inDirectory(directoryOf(dag, node), description.file))
            : undefined;
      tag = text === undefined ? '-' : jobTag(text);
      this.tags.set(key, tag);
    }
    return tag;
  }

  private growing(): readonly (string | undefined)[] {
    return [this.plan.log, this.engine.core.dag.jobstateLog, this.plan.nodesLog];
  }
}
