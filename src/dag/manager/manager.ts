import { Engine } from '../engine/engine.ts';
import type { DagCommand, DagEvent } from '../engine/messages.ts';
import { dagAd } from '../files/dag-ad.ts';
import { type DagGraph, nameOf } from '../language/graph.ts';
import { fileNameOf } from '../language/names.ts';
import { haltName } from '../rescue.ts';
import { headerLines, logJobs } from './batch-log.ts';
import { inheritedOf, nodeSubmit, type SubmitOptions } from './node-submit.ts';
import { Outputs } from './outputs.ts';
import { Pending } from './pending.ts';
import { type DagRun, primaryOf } from './prepare.ts';
import { ScriptRuns } from './script-runs.ts';
import type { DagWorld, Happening, JournalBegin, JournalEntry } from './world.ts';

/** How many submits go to the queue in one request before new happenings are handled. */
const SUBMIT_CHUNK = 1000;
/** Milliseconds between two checks for a halt file. */
const HALT_LOOK = 5000;

/**
 * The driver: carries events from the world to the engine and its commands back, writing each batch to the journal
 * first.
 */
export class Manager {
  private readonly run: DagRun;
  private readonly world: DagWorld;
  private readonly engine: Engine;
  private readonly outputs: Outputs;
  private readonly submitOptions: SubmitOptions;
  private readonly begun: JournalBegin;
  private startedAt = 0;
  /** Nodes whose submit was requested but not answered yet, in order. */
  private toSubmit: number[] = [];
  private readonly scripts: ScriptRuns;
  private wakeAt: number | undefined;
  private statusAt: number | undefined;
  private adAt = 0;
  private adOutdated = true;
  private cursor: string | undefined;
  private haltFile = false;

  constructor(run: DagRun, world: DagWorld, engine: Engine, outputs: Outputs, nodesLog: string, begun: JournalBegin) {
    this.run = run;
    this.world = world;
    this.engine = engine;
    this.outputs = outputs;
    this.begun = begun;
    this.scripts = new ScriptRuns(world, engine.core.dag);
    this.submitOptions = {
      dagmanId: run.dagmanId,
      batchName: run.batchName ?? `${fileNameOf(primaryOf(run))}+${run.dagmanId}`,
      batchId: run.batchId ?? `${run.dagmanId}.0`,
      nodesLog,
      inherited: inheritedOf(run, engine.core.settings),
    };
  }

  private get dag(): DagGraph {
    return this.engine.core.dag;
  }

  /** Begins a new run; `loop` carries out its first commands. */
  begin(opening: readonly string[]): void {
    const at = this.world.now();
    this.world.files.write(this.submitOptions.nodesLog, '');
    this.world.journal.append({ at, events: [], sizes: this.outputs.sizes(), begin: this.begun });
    this.world.resumeFrom(undefined);
    this.first({ at, events: [], sizes: [] }, opening);
  }

  /** Restores the engine from the journal and resumes what was in progress when the manager died. */
  async recover(entries: readonly JournalEntry[], opening: readonly string[]): Promise<void> {
    const last = entries.length - 1;
    const pending = new Pending();
    let removals: readonly DagCommand[] = [];
    for (const [i, entry] of entries.entries()) {
      if (i === last) this.outputs.cutBack(entry.sizes);
      if (entry.cursor !== undefined) this.cursor = entry.cursor;
      pending.answer(entry.events);
      const commands = this.redo(entry, i === 0, i === last, opening);
      pending.ask(commands);
      if (i === last) removals = commands.filter((c) => c.do === 'remove-node' || c.do === 'remove-all');
    }
    this.world.resumeFrom(this.cursor);
    const at = this.world.now();
    this.outputs.say(at, 'Running in RECOVERY mode... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>');
    this.outputs.internal(at, `DAGMAN_STARTED ${this.run.dagmanId}.0`);
    this.outputs.internal(at, 'RECOVERY_STARTED');
    if (this.engine.core.exitCode === undefined) await this.resolveSubmits(pending);
    for (const command of removals) await this.remove(command);
    if (this.engine.core.exitCode === undefined) {
      for (const command of pending.scripts()) {
        const name = nameOf(this.dag, command.node);
        this.outputs.say(at, `The end of the ${command.type} script of node ${name} was not seen; running it again`);
        this.scripts.start(command);
      }
    }
    this.outputs.say(at, '...done with RECOVERY mode <<<<<<<<<<<<<<<<<<<<<<<<<<<<<<');
    this.outputs.internal(at, 'RECOVERY_FINISHED');
    this.outputs.flush();
  }

  /** Runs until the DAG has ended, and returns its exit code, or until it is told to stop. */
  async loop(): Promise<number | 'stopped'> {
    this.haltFile = this.engine.core.halted;
    this.showAd(true);
    while (this.engine.core.exitCode === undefined) {
      const events: DagEvent[] = [];
      if (this.toSubmit.length > 0) events.push(...(await this.submitSome()));
      const now = this.world.now();
      const until = events.length > 0 || this.toSubmit.length > 0 ? now : this.until(now);
      const stopped = this.takeAll(await this.world.next(until), events);
      if (events.length > 0 || this.due()) await this.advance(events);
      if (stopped && this.engine.core.exitCode === undefined) {
        this.stop();
        return 'stopped';
      }
    }
    this.showAd(true);
    return this.engine.core.exitCode;
  }

  /** Updates the DAG's status in the ad of the manager's own job at intervals (DAGMAN_QUEUE_UPDATE_INTERVAL). */
  private showAd(atOnce: boolean): void {
    const now = this.world.now();
    if (!this.adOutdated || (!atOnce && now < this.adAt)) return;
    const { core } = this.engine;
    this.world.show(dagAd(core, now));
    this.adAt = now + Math.max(1, core.settings.DAGMAN_QUEUE_UPDATE_INTERVAL) * 1000;
    this.adOutdated = false;
  }

  /** Journals the sizes of the files, so that what they say about the stop is kept when the manager resumes. */
  private stop(): void {
    const at = this.world.now();
    const { cursor } = this;
    this.outputs.stopped(at);
    this.world.journal.append({
      at,
      events: [],
      sizes: this.outputs.sizes(),
      ...(cursor === undefined ? {} : { cursor }),
    });
  }

  private until(now: number): number {
    return Math.min(
      now + HALT_LOOK,
      this.wakeAt ?? Number.POSITIVE_INFINITY,
      this.statusAt ?? Number.POSITIVE_INFINITY,
      this.adOutdated ? this.adAt : Number.POSITIVE_INFINITY,
    );
  }

  private due(): boolean {
    const now = this.world.now();
    this.showAd(false);
    if (this.statusAt !== undefined && now >= this.statusAt) this.statusAt = this.outputs.writeStatus(now, false);
    return this.wakeAt !== undefined && now >= this.wakeAt;
  }

  /** Adds what happened to `events`; returns true if the manager has to stop. */
  private takeAll(happenings: readonly Happening[], events: DagEvent[]): boolean {
    let stop = false;
    for (const happening of happenings) {
      if ('cursor' in happening && happening.cursor !== undefined) this.cursor = happening.cursor;
      if (happening.is === 'stop') stop = true;
      else if (happening.is === 'job') {
        const { cluster, proc, change } = happening;
        events.push({ is: 'job', cluster, proc, change });
      } else if (happening.is === 'provisioned') events.push({ is: 'provisioned' });
      else if (happening.is === 'script-ended') events.push(...this.scripts.ended(happening));
      else events.push(happening.event);
    }
    // The DAG stays halted as long as there is a halt file.
    const halt = this.world.files.exists(haltName(primaryOf(this.run)));
    if (halt && !this.haltFile) events.push({ is: 'halt' });
    else if (!halt && this.haltFile) events.push({ is: 'resume' });
    this.haltFile = halt;
    return stop;
  }

  /** Journals one batch, passes it to the engine, and carries out the commands. */
  private async advance(events: readonly DagEvent[]): Promise<void> {
    const at = this.world.now();
    const { cursor } = this;
    this.wakeAt = undefined;
    this.world.journal.append({ at, events, sizes: this.outputs.sizes(), ...(cursor === undefined ? {} : { cursor }) });
    const commands = this.think({ at, events, sizes: [] }, false);
    this.writeFiles(commands, at, false);
    this.adOutdated = true;
    await this.perform(commands);
  }

  /** The first batch has no events; it starts the DAG. */
  private first(entry: JournalEntry, opening: readonly string[]): void {
    const commands = this.think(entry, true, opening);
    this.writeFiles(commands, entry.at, true);
    for (const command of commands) this.note(command);
  }

  /** Replays one batch of a journal. For the last one, whose effects may be incomplete, writes the files too. */
  private redo(entry: JournalEntry, first: boolean, last: boolean, opening: readonly string[]): readonly DagCommand[] {
    if (first) this.startedAt = entry.at;
    if (!last) {
      this.wakeAt = undefined;
      const { engine } = this;
      const commands = first ? engine.start(entry.at) : engine.step(entry.events, entry.at);
      for (const command of commands) if (command.do === 'wake') this.note(command);
      return commands;
    }
    this.wakeAt = undefined;
    const commands = this.think(entry, first, opening);
    this.writeFiles(commands, entry.at, first);
    for (const command of commands) if (command.do === 'wake') this.note(command);
    return commands;
  }

  private think(entry: JournalEntry, first: boolean, opening: readonly string[] = []): readonly DagCommand[] {
    const { engine, outputs } = this;
    if (first) this.startedAt = entry.at;
    logJobs(entry, engine.core, outputs);
    if (first) outputs.writeDot(entry.at, true);
    const commands = first ? engine.start(entry.at) : engine.step(entry.events, entry.at);
    if (first) {
      const { batchName, nodesLog } = this.submitOptions;
      for (const line of headerLines(this.run, batchName, nodesLog, opening)) outputs.say(entry.at, line);
      outputs.internal(entry.at, `DAGMAN_STARTED ${this.run.dagmanId}.0`);
    }
    outputs.take(commands, entry.at);
    return commands;
  }

  private writeFiles(commands: readonly DagCommand[], at: number, first: boolean): void {
    const { outputs } = this;
    if (!first) outputs.writeDot(at, false);
    const end = commands.find((command) => command.do === 'finish');
    if (end === undefined) this.statusAt = outputs.writeStatus(at, false);
    else if (!end.crashed) {
      outputs.writeStatus(at, true);
      outputs.internal(at, `DAGMAN_FINISHED ${end.code}`);
      outputs.writeMetrics({
        start: this.startedAt,
        end: at,
        exitCode: end.code,
        rescueNumber: this.begun.rescueNumber,
        parentDagmanId: this.run.parentDagmanId === undefined ? '' : String(this.run.parentDagmanId),
        version: this.run.version,
      });
    }
    if (end !== undefined) outputs.say(at, `**** condor_dagman (condor_DAGMAN) pid 0 EXITING WITH STATUS ${end.code}`);
    outputs.flush();
  }

  private async perform(commands: readonly DagCommand[]): Promise<void> {
    for (const command of commands) {
      if (command.do === 'remove-all') await this.dropSubmits();
      if (command.do === 'remove-all' || command.do === 'remove-node') await this.remove(command);
      else this.note(command);
    }
  }

  private async remove(command: DagCommand): Promise<void> {
    if (command.do === 'remove-node') await this.world.removeCluster(command.cluster, command.reason);
    else if (command.do === 'remove-all') {
      const { services, final } = this.dag;
      const keep = command.beforeFinal ? [...services, ...(final === undefined ? [] : [final])] : [];
      await this.world.removeAll(
        command.reason,
        keep.map((node) => nameOf(this.dag, node)),
      );
    }
  }

  private note(command: DagCommand): void {
    if (command.do === 'submit') this.toSubmit.push(command.node);
    else if (command.do === 'script') this.scripts.start(command);
    else if (command.do === 'kill-scripts') this.world.killScripts();
    else if (command.do === 'wake') this.wakeAt = Math.min(this.wakeAt ?? command.at, command.at);
  }

  /** Submits that were not sent before the DAG removes its jobs are dropped. */
  private async dropSubmits(): Promise<void> {
    const dropped = this.toSubmit.splice(0);
    if (dropped.length === 0 || this.engine.core.exitCode !== undefined) return;
    await this.advance(dropped.map((node) => ({ is: 'unsent', node })));
  }

  private async submitSome(): Promise<readonly DagEvent[]> {
    const nodes = this.toSubmit.splice(0, SUBMIT_CHUNK);
    const requests = nodes.map((node) => nodeSubmit(this.engine.core, node, this.submitOptions));
    const outcomes = await this.world.submit(requests);
    return nodes.map((node, i) => {
      const outcome = outcomes[i];
      if (outcome === undefined) return { is: 'submit-failed', node, reason: 'The queue did not answer', again: true };
      if ('failed' in outcome) return { is: 'submit-failed', node, reason: outcome.failed, again: outcome.again };
      return { is: 'submitted', node, cluster: outcome.cluster, procs: outcome.procs };
    });
  }

  /** Asks the queue which submits it already has, so that none is made twice. */
  private async resolveSubmits(pending: Pending): Promise<void> {
    const submits = pending.submits();
    if (submits.length === 0) return;
    const found = new Map((await this.world.findSubmitted()).map((f) => [`${f.retry} ${f.node}`, f]));
    const events: DagEvent[] = [];
    for (const { node, dropped } of submits) {
      const had = found.get(`${this.engine.core.retries[node]} ${nameOf(this.dag, node)}`);
      if (had !== undefined) events.push({ is: 'submitted', node, cluster: had.cluster, procs: had.procs });
      else if (dropped) events.push({ is: 'unsent', node });
      else this.toSubmit.push(node);
    }
    if (events.length > 0) await this.advance(events);
  }
}
