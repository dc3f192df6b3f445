import type { DagCommand, DagEvent } from '../engine/messages.ts';

type ScriptCommand = Extract<DagCommand, { readonly do: 'script' }>;

/** What is still in progress after replaying a journal: submits and scripts requested in it and not answered. */
export class Pending {
  private readonly asked = new Map<number, number>();
  /** By type and node; a node may have several HOLD scripts. */
  private readonly running = new Map<string, ScriptCommand[]>();
  private clock = 0;
  private removedAt = -1;

  /** Takes the answers in a batch of the journal. */
  answer(events: readonly DagEvent[]): void {
    for (const event of events) {
      if (event.is === 'submitted' || event.is === 'submit-failed' || event.is === 'unsent')
        this.asked.delete(event.node);
      else if (event.is === 'script-ended') this.running.get(`${event.type} ${event.node}`)?.shift();
    }
  }

  /** Takes the requests among the resulting commands. */
  ask(commands: readonly DagCommand[]): void {
    for (const command of commands) {
      this.clock++;
      if (command.do === 'submit') this.asked.set(command.node, this.clock);
      else if (command.do === 'script') {
        const key = `${command.type} ${command.node}`;
        const list = this.running.get(key);
        if (list === undefined) this.running.set(key, [command]);
        else list.push(command);
      }
      if (command.do === 'remove-all') this.removedAt = this.clock;
    }
  }

  /** In the order of the requests; `dropped`: the DAG has since removed its jobs. */
  submits(): readonly { readonly node: number; readonly dropped: boolean }[] {
    return [...this.asked].map(([node, at]) => ({ node, dropped: at < this.removedAt }));
  }

  scripts(): readonly ScriptCommand[] {
    return [...this.running.values()].flat();
  }
}
