import type { DagGraph } from '../language/graph.ts';
import type { ScriptType } from '../language/commands.ts';
import { type Core, type CoreOptions, canSubmit, forceStatus, jobstate, newCore, nodeName, say } from './core.ts';
import { checkEnd, finalEnded, sayStatus, shutdown } from './ending.ts';
import { countAsRemoved, jobChanged } from './jobs.ts';
import type { DagCommand, DagEvent, Limits } from './messages.ts';
import { finishPreDone, startNode } from './nodes.ts';
import { postEnded, preEnded } from './script-ends.ts';
import { jobIdOf, nextScript, scriptArgv, wakeDeferred } from './scripts.ts';
import { DAG_STATUS, EXIT, STATUS } from './status.ts';
import { submitFailed, submitReady, submitted, unsent } from './submits.ts';

const SCRIPT_TYPES = ['PRE', 'POST', 'HOLD'] as const satisfies readonly ScriptType[];

/**
 * A running DAG: events in, commands out, with no clock and no access to the world. The same batches of events always
 * give the same commands, which is how a DAG survives the death of its manager. An event costs O(degree of its node +
 * log ready nodes), whatever the size of the DAG.
 */
export class Engine {
  /** Status files and displays read it; only the engine changes it. */
  readonly core: Core;
  private shown = '';

  constructor(dag: DagGraph, options: CoreOptions) {
    this.core = newCore(dag, options);
  }

  /** Completes nodes marked DONE and starts those without parents. `now` is in Unix milliseconds. */
  start(now: number): readonly DagCommand[] {
    const { core } = this;
    core.now = now;
    say(core, `Dag contains ${core.dag.order.length} total nodes`);
    say(core, 'Bootstrapping...');
    finishPreDone(core);
    for (const service of core.dag.services) {
      say(core, `Starting service node ${nodeName(core, service)}...`);
      startNode(core, service, false);
    }
    const { provisioner } = core.dag;
    if (provisioner !== undefined) {
      say(core, 'Starting provisioner node...');
      startNode(core, provisioner, false);
    } else this.startRoots();
    return this.settle();
  }

  /** Handles events that happened at the same time, in order, and then acts on the result. */
  step(events: readonly DagEvent[], now: number): readonly DagCommand[] {
    this.core.now = now;
    for (const event of events) {
      if (this.core.exitCode !== undefined) break;
      this.handle(event);
    }
    return this.settle();
  }

  private handle(event: DagEvent): void {
    const { core } = this;
    switch (event.is) {
      case 'submitted':
        submitted(core, event.node, event.cluster, event.procs);
        return;
      case 'submit-failed':
        submitFailed(core, event.node, event.reason, event.again);
        return;
      case 'unsent':
        unsent(core, event.node);
        return;
      case 'job':
        jobChanged(core, event.cluster, event.proc, event.change);
        return;
      case 'script-ended':
        this.scriptEnded(event);
        return;
      case 'provisioned':
        if (core.provisioned) return;
        core.provisioned = true;
        this.startRoots();
        return;
      case 'halt':
        if (core.halted) return;
        core.statusWithoutHalt = core.dagStatus;
        forceStatus(core, DAG_STATUS.halted);
        return;
      case 'resume':
        if (!core.halted) return;
        forceStatus(core, core.statusWithoutHalt);
        return;
      case 'remove':
        // A repeated removal, after a crash for example, must not remove the final node that the first one started.
        if (core.dagStatus === DAG_STATUS.removed) return;
        say(core, 'Received SIGUSR1');
        shutdown(core, EXIT.abort, DAG_STATUS.removed);
        return;
      case 'throttle':
        this.throttle(event.limits);
        return;
      case 'tick':
        return;
    }
  }

  /** Removes the jobs of nodes beyond a lower limit if the settings ask for it; the lost attempt is not counted. */
  private throttle(limits: Partial<Limits>): void {
    const { core } = this;
    const before = core.limits.maxJobs;
    core.limits = { ...core.limits, ...limits };
    const { maxJobs } = core.limits;
    if (!core.settings.DAGMAN_REMOVE_JOBS_AFTER_LIMIT_CHANGE || maxJobs === before || maxJobs <= 0) return;
    let seen = 0;
    for (const node of core.dag.order) {
      const jobs = core.jobs.get(node);
      if (core.status[node] !== STATUS.submitted || ++seen <= maxJobs || jobs === undefined) continue;
      core.retryMax[node] = (core.retryMax[node] ?? 0) + 1;
      const reason = 'DAG Limit: Max number of submitted nodes was reached.';
      core.out.push({ do: 'remove-node', node, cluster: jobs.cluster, reason });
    }
  }

  private startRoots(): void {
    const { core } = this;
    for (const node of core.dag.order) {
      if (node !== core.dag.provisioner && canSubmit(core, node)) startNode(core, node, false);
    }
  }

  private scriptEnded(event: Extract<DagEvent, { readonly is: 'script-ended' }>): void {
    const { core } = this;
    const { node, type, end } = event;
    const queue = core.scripts[type];
    queue.running--;
    if (event.notStarted !== undefined) {
      say(core, event.notStarted);
      say(core, `Error: Failed to execute ${type} for Node ${nodeName(core, node)}`);
    }
    const defer = core.dag.scripts.get(node)?.[type]?.defer;
    if (defer !== undefined && 'code' in end && end.code === defer.status && event.notStarted === undefined) {
      say(
        core,
        `Deferring ${type} script of node ${nodeName(core, node)} for ${defer.seconds} seconds (exit status was ${defer.status})...`,
      );
      core.deferrals[type]++;
      queue.deferred.push({ node, at: core.now + defer.seconds * 1000 });
    } else if (type === 'PRE') preEnded(core, node, end);
    else if (type === 'POST') postEnded(core, node, end);
  }

  /** Runs and submits what it can, ends the DAG if it is time, and returns the resulting commands. */
  private settle(): readonly DagCommand[] {
    const { core } = this;
    const wake = wakeDeferred(core);
    this.runWhatMay();
    this.showCounts();
    const finalWasStarted = core.finalStarted;
    if (core.exitCode === undefined && finalEnded(core)) countAsRemoved(core);
    checkEnd(core);
    if (core.finalStarted !== finalWasStarted) {
      this.runWhatMay();
      checkEnd(core);
    }
    const rest = core.resting.reduce((least, r) => Math.min(least, r.at), wake ?? Number.POSITIVE_INFINITY);
    if (Number.isFinite(rest)) core.out.push({ do: 'wake', at: rest });
    return core.out.splice(0);
  }

  /** A node with nothing to do ends at once, and the nodes that it releases may do the same. */
  private runWhatMay(): void {
    const { core } = this;
    let before = -1;
    while (core.exitCode === undefined && before !== core.out.length) {
      before = core.out.length;
      this.launchScripts();
      submitReady(core);
    }
  }

  private launchScripts(): void {
    const { core } = this;
    for (const type of SCRIPT_TYPES) {
      while (core.exitCode === undefined) {
        const node = nextScript(core, type);
        if (node === undefined) break;
        this.launch(node, type);
      }
    }
  }

  private launch(node: number, type: ScriptType): void {
    const { core } = this;
    const script = core.dag.scripts.get(node)?.[type];
    if (script === undefined) return;
    const name = nodeName(core, node);
    say(core, `Running ${type} script of Node ${name}...`);
    if (type !== 'HOLD') {
      const id = type === 'POST' ? jobIdOf(core, node) : '-';
      jobstate(core, node, `${type}_SCRIPT_STARTED`, id.startsWith('-') ? '-' : id);
    }
    const { argv, unknown } = scriptArgv(core, node, type, script);
    for (const { word, notInPre } of unknown) {
      say(
        core,
        notInPre
          ? `Warning: ${word} macro should not be used as a PRE script argument!`
          : `Warning: unrecognized macro ${word} in node ${name} ${type} script arguments`,
      );
      if (core.settings.DAGMAN_USE_STRICT >= 1) {
        say(core, 'ERROR: Warning is fatal error because of DAGMAN_USE_STRICT setting');
        shutdown(core, EXIT.error, DAG_STATUS.error);
        if (core.exitCode !== undefined) return;
        break;
      }
    }
    core.scripts[type].running++;
    core.out.push({ do: 'script', node, type, argv, debug: script.debug });
  }

  /** Logs the table if any of its numbers changed. */
  private showCounts(): void {
    const { counts: c } = this.core;
    const now = `${c.done} ${c.pre} ${c.submitted} ${c.post} ${this.core.ready.size} ${c.failed} ${c.held}`;
    if (now === this.shown) return;
    this.shown = now;
    sayStatus(this.core);
  }
}
