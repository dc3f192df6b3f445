import { randomBytes } from 'node:crypto';
import type { AttemptKey } from '../../../job/ids.ts';
import { nodeKey } from '../../../job/ids.ts';
import type { Ending } from '../../../site/contract.ts';
import { crashPoint } from '../../../util/crash-point.ts';
import type { Attempt } from '../attempts.ts';
import type { CentralManagerTable } from '../central-manager-state.ts';
import { freeNow, type Worker } from '../collector.ts';
import type { Size } from '../../wire/wire.ts';
import type { Offer } from '../negotiator.ts';
import type { GrantedNode } from '../central-manager-journal.ts';
import type { Hold, Seat } from './machines.ts';
import { DedicatedView } from './dedicated-view.ts';
import { KeptClaims } from './kept-claims.ts';
import { ownerOf, type Ready } from './service-order.ts';
import { plan, type Told } from './dedicated.ts';
import { stepOf } from './gang-life.ts';
import { gangOf, grantNodes, inOrder, nodesOf, releaseNodes } from './nodes.ts';
import { endingFor, endingOf, nodesIn, type Round, roundOf, viewOf } from './rounds.ts';

/** How long a parallel job whose nodes did not all become ready waits before it is granted again, in milliseconds. */
const AGAIN_MS = 5000;

/** The parallel jobs of the pool: those that wait, and those whose nodes are granted. */
export class Gangs {
  readonly #table: CentralManagerTable;
  readonly #view: DedicatedView;
  /** The attempts that wait, by gang. */
  readonly #waiting = new Map<string, Set<Attempt>>();
  readonly #rounds = new Map<string, Round>();
  /** Until when a parallel job that did not come together waits, by the monotonic clock. */
  readonly #resting = new Map<string, number>();
  readonly #changed = new Set<Round>();
  readonly #kept = new KeptClaims();
  /** What the last plan held of the machines, and what it says about those that wait. */
  holds: readonly Hold[] = [];
  told: ReadonlyMap<string, Told> = new Map();

  constructor(table: CentralManagerTable) {
    this.#table = table;
    this.#view = new DedicatedView(table);
  }

  /** Takes over what an earlier central manager had granted. */
  recover(parts: Iterable<Attempt>): void {
    const granted = new Map<string, Attempt[]>();
    for (const part of parts) {
      if (part.phase === 'ended' || part.phase === 'withdrawn') continue;
      if (part.nodes) granted.set(gangOf(part.key), [...(granted.get(gangOf(part.key)) ?? []), part]);
    }
    for (const [gang, some] of granted) this.#rounds.set(gang, roundOf(gang, inOrder(some), this.#table.ports.clock()));
  }

  enqueue(attempt: Attempt): void {
    const gang = gangOf(attempt.key);
    const waiting = this.#waiting.get(gang) ?? new Set();
    this.#waiting.set(gang, waiting.add(attempt));
    this.#table.granting.wanting = true;
  }

  dequeue(attempt: Attempt): void {
    const gang = gangOf(attempt.key);
    const waiting = this.#waiting.get(gang);
    waiting?.delete(attempt);
    if (waiting?.size === 0) this.#waiting.delete(gang);
  }

  /** The attempts that wait, of all parallel jobs or of this one. */
  waiting(gang?: string): readonly Attempt[] {
    if (gang !== undefined) return [...(this.#waiting.get(gang) ?? [])];
    return [...this.#waiting.values()].flatMap((some) => [...some]);
  }

  /** Whether parallel jobs wait, or machines are set aside. */
  get hasWork(): boolean {
    const { reservations } = this.#table;
    return this.#waiting.size + this.holds.length + reservations.size + this.#kept.size > 0;
  }

  /** The owners of parallel jobs that wait. */
  owners(): Iterable<string> {
    return new Set(this.#ready().map((one) => ownerOf(one)));
  }

  /** A node has ended: as in HTCondor, its slot is kept for a while if its machine names a dedicated scheduler. */
  left(worker: Worker, size: Size): void {
    const { sharing, ports } = this.#table;
    const { keepSeconds } = sharing.rules.dedicated;
    if (keepSeconds === 0 || worker.texts['DedicatedScheduler'] == null) return;
    this.#kept.keep(worker.instance, size, ports.clock() / 1000 + keepSeconds);
  }

  /** What the last plan leaves of these offers for jobs that run for so many seconds at the most. */
  spare(offers: readonly Offer<Worker>[], seconds: number): readonly Offer<Worker>[] {
    return this.holds.length === 0 ? offers : this.#view.spare(offers, this.holds, seconds);
  }

  /** What is free of a worker for a job of which nobody knows when it ends, and for whom the rest is held. */
  spareNow(worker: Worker): { readonly free: Size; readonly heldFor: readonly string[] } {
    const here = this.holds.filter(({ machine }) => machine === worker.instance);
    if (here.length === 0) return { free: freeNow(worker), heldFor: [] };
    const free = this.#view.spareOf(worker, this.holds, Number.POSITIVE_INFINITY);
    return { free, heldFor: [...new Set(here.map((hold) => hold.for))] };
  }

  /** Whether slots are held of a worker for a parallel job, or for a reservation. */
  holdsOf(instance: string): boolean {
    return this.holds.some(({ machine }) => machine === instance);
  }

  /** One cycle of the dedicated scheduler. */
  schedule(): void {
    const ready = this.#ready();
    // What is claimed already comes first.
    const first = (id: string) => (this.#kept.has(id) ? 0 : 1);
    const machines = this.#view.machines().sort((a, b) => first(a.id) - first(b.id));
    const byId = new Map(ready.map((one) => [one.gang, one.parts]));
    const { starts, holds, told, vacate } = plan(this.#view.wishes(ready), machines, this.#view.reserved());
    this.told = told;
    for (const { id, seats } of starts) this.#grant(id, byId.get(id) ?? [], seats);
    this.holds = [...holds, ...this.#kept.holds(this.#table.ports.clock() / 1000, holds)];
    for (const { claim, machine } of vacate) this.#view.vacate(machine, claim);
  }

  #ready(): Ready[] {
    return [...this.#waiting].flatMap(([gang, some]) => {
      const parts = inOrder([...some]);
      return this.#isWhole(gang, parts) ? [{ gang, parts }] : [];
    });
  }

  #isWhole(gang: string, parts: readonly Attempt[]): boolean {
    if (this.#rounds.has(gang)) return false;
    if ((this.#resting.get(gang) ?? 0) > this.#table.ports.clock()) return false;
    return parts.length >= (parts[0]?.request.gang?.procs ?? 1);
  }

  /** All nodes of a parallel job, in one entry of the journal. */
  #grant(gang: string, parts: readonly Attempt[], seats: readonly Seat[]): void {
    crashPoint('central-manager.before-gang');
    const { attempts, collector, priorities, sharing, ports } = this.#table;
    const granted: GrantedNode[] = [];
    let number = 0;
    for (const [index, part] of parts.entries()) {
      const kind = this.#table.autoclusters.of(part.request);
      part.kind = kind;
      for (const { machine } of seats.filter((seat) => seat.part === index)) {
        const worker = collector.get(machine);
        if (!worker) return;
        const key = nodeKey(part.key, number++);
        const { instance, boot, token } = worker;
        granted.push({ key, worker: instance, boot, claim: randomBytes(6).toString('base64url'), token });
      }
    }
    const nodes = grantNodes(attempts, granted);
    for (const node of nodes) {
      const worker = collector.get(node.worker ?? '');
      const { kind, claim: id, key } = node;
      if (!worker || !kind || id === undefined) continue;
      collector.claim(worker, { id, kind, size: kind.size, key, behind: new Set(), dedicated: true });
      node.toldStill = false;
      this.#kept.use(worker.instance, kind.size.cpus);
      priorities.use(kind.owner, kind.size.cpus);
      sharing.starts(node);
    }
    for (const part of parts) {
      this.dequeue(part);
      delete part.why;
    }
    this.#rounds.set(gang, roundOf(gang, parts, ports.clock()));
    ports.journal.add({ r: 'G', nodes: granted });
    for (const part of parts) this.#table.report(part);
    this.#table.granting.startNodes(nodes);
  }

  /** Another node of the same job, by its number. */
  sibling(node: Attempt, number: number): Attempt | undefined {
    const round = this.#rounds.get(gangOf(node.key));
    return round && nodesIn(round).find((one) => one.node?.number === number);
  }

  /** Something has become known of a node. */
  changed(node: Attempt): void {
    const round = this.#rounds.get(gangOf(node.key));
    if (!round) return;
    this.#changed.add(round);
    this.#table.settle();
  }

  /** A node never ran at its worker, and never will. */
  never(node: Attempt, why: string): void {
    const round = this.#rounds.get(gangOf(node.key));
    if (!round || !node.node) return;
    round.never.set(node.node.number, why);
    this.changed(node);
  }

  /** The user wants this attempt ended, and so the whole job. */
  cancel(part: Attempt, how: 'remove' | 'vacate' | 'if-not-started', message: string): void {
    const round = this.#rounds.get(gangOf(part.key));
    if (!round || round.phase === 'ending') return;
    if (how === 'if-not-started' && round.phase === 'started') return this.#table.report(part);
    part.cancelling = how;
    if (how === 'vacate' && round.phase === 'started')
      for (const node of nodesIn(round)) this.#stop(node, 'vacate', message);
    this.#changed.add(round);
    this.#table.settle();
  }

  /** The user wants a running job suspended, or to go on: all its nodes, also those of the other jobs of its cluster. */
  order(node: Attempt, t: 'suspend' | 'resume' | 'checkpoint'): void {
    const round = this.#rounds.get(gangOf(node.key));
    if (round?.phase !== 'started' || t === 'checkpoint') return;
    const is = t === 'suspend';
    for (const part of round.parts) part.still = is;
    this.#table.ports.journal.add({ r: 'still', keys: round.parts.map(({ key }) => key), is });
    this.#changed.add(round);
  }

  /** A node's worker has come back: what it was told last may be lost, and it says again what its owner wants. */
  back(node: Attempt): void {
    delete node.toldStill;
    delete node.slot;
    this.changed(node);
  }

  /** The nodes of these attempts are not needed any more: their results are home. */
  forget(part: Attempt): readonly Attempt[] {
    const nodes = nodesOf(part);
    const gang = gangOf(part.key);
    this.dequeue(part);
    if (this.#rounds.get(gang)?.parts.includes(part) && part.phase !== 'ended') this.#rounds.delete(gang);
    for (const node of nodes) this.#table.attempts.delete(node.key);
    return nodes;
  }

  /** Does what has become due. */
  advance(): void {
    const rounds = [...this.#changed];
    this.#changed.clear();
    for (const round of rounds) this.#advance(round);
  }

  tick(): void {
    const now = this.#table.ports.clock();
    for (const [gang, until] of this.#resting) if (until <= now) this.#resting.delete(gang);
    const { reservations, ports } = this.#table;
    for (const { id, until } of reservations.values()) {
      if (until > ports.now() / 1000) continue;
      reservations.delete(id);
      ports.journal.add({ r: 'unreserve', id });
    }
    for (const round of this.#rounds.values()) this.#changed.add(round);
  }

  #advance(round: Round): void {
    if (this.#rounds.get(round.gang) !== round) return;
    const step = stepOf(viewOf(round, this.#table.ports.clock()));
    switch (step.do) {
      case 'wait':
        return this.#follow(round);
      case 'go':
        return this.#go(round);
      case 'release':
        return this.#release(round, step.why);
      case 'end':
        return this.#end(round, { how: step.how });
      case 'finish':
        return this.#finish(round);
    }
  }

  /** While it goes on: reports that it runs, or ends what is left of it. */
  #follow(round: Round): void {
    const nodes = nodesIn(round);
    if (round.phase === 'ending') for (const node of nodes) this.#stop(node, 'remove', 'its job has ended');
    if (round.phase !== 'started' || nodes.some(({ phase }) => phase === 'granted')) return;
    this.#keepTogether(round, nodes);
    const is = nodes.some(({ phase }) => phase === 'suspended') ? 'suspended' : 'running';
    const startedAt = Math.min(...nodes.flatMap((node) => node.startedAt ?? []));
    for (const part of round.parts) {
      if (part.phase === is) continue;
      part.phase = is;
      part.host = nodesOf(part)[0]?.host ?? '';
      if (Number.isFinite(startedAt)) part.startedAt = startedAt;
      this.#table.report(part);
    }
  }

  /** Suspends all nodes while the user, or the owner of one node's machine, wants that. */
  #keepTogether({ parts }: Round, nodes: readonly Attempt[]): void {
    const live = nodes.filter(({ phase }) => phase === 'running' || phase === 'suspended');
    const still = parts.some((part) => part.still === true) || live.some(({ slot }) => slot?.activity === 'Suspended');
    for (const node of live) {
      if (node.toldStill === still || node.worker === undefined) continue;
      node.toldStill = still;
      this.#table.send(node.worker, { t: still ? 'suspend' : 'resume', key: node.key });
    }
  }

  #end(round: Round, ending: Ending): void {
    crashPoint('central-manager.before-over');
    round.phase = 'ending';
    round.since = this.#table.ports.clock();
    for (const part of round.parts) {
      part.decided = endingFor(part, round, ending);
      this.#table.ports.journal.add({ r: 'over', keys: [part.key], ending: part.decided });
    }
    this.#advance(round);
  }

  #go(round: Round): void {
    crashPoint('central-manager.before-go');
    const { ports } = this.#table;
    round.phase = 'started';
    round.since = ports.clock();
    const keys = round.parts.map(({ key }) => key);
    for (const part of round.parts) part.gone = true;
    ports.journal.add({ r: 'go', keys });
    this.#table.later(() => crashPoint('central-manager.saved-go'));
    for (const node of nodesIn(round)) this.sendGo(node);
  }

  /** Tells a node's worker that it may start, again if the connection broke in the meantime. */
  sendGo({ worker, claim, key }: Attempt): void {
    if (worker !== undefined && claim !== undefined) this.#table.send(worker, { t: 'go', key, claim });
  }

  /** Whether the nodes of its job have been told to start. */
  hasGone(node: Attempt): boolean {
    const part = node.node && this.#table.attempts.get(node.node.part);
    return part?.gone === true;
  }

  #stop(node: Attempt, how: 'remove' | 'vacate', message: string): void {
    if (node.phase === 'ended' || node.worker === undefined || node.cancelling === 'remove') return;
    node.cancelling = how;
    this.#table.send(node.worker, { t: 'cancel', key: node.key, how, message });
  }

  #release(round: Round, why: string): void {
    crashPoint('central-manager.before-release');
    const { attempts, ports } = this.#table;
    const keys = round.parts.map(({ key }) => key);
    const nodes = nodesIn(round);
    for (const node of nodes) {
      this.#table.granting.dropNode(node);
      this.#table.sharing.ends(node.key);
      if (node.worker !== undefined) this.#table.send(node.worker, { t: 'forget', keys: [node.key] });
    }
    ports.journal.add({ r: 'R', keys });
    releaseNodes(attempts, keys);
    this.#rounds.delete(round.gang);
    this.#resting.set(round.gang, ports.clock() + AGAIN_MS);
    ports.log(`${round.gang}: not started`, { why });
    const lost = [...round.never.values()].find((reason) => reason.startsWith(INPUT));
    for (const part of round.parts) {
      if (part.cancelling === 'remove' || part.cancelling === 'if-not-started') this.#table.withdraw(part);
      else if (lost !== undefined) this.#table.lose(part, lost.slice(INPUT.length));
      else {
        delete part.cancelling;
        part.why = why;
        this.enqueue(part);
        this.#table.report(part);
      }
    }
    this.#table.granting.wanting = true;
  }

  #finish(round: Round): void {
    this.#rounds.delete(round.gang);
    for (const part of round.parts) this.#table.end(part, endingOf(part));
  }
}

/** Marks the reason of a node whose input is missing: its job must be prepared again. */
export const INPUT = 'input: ';

/** Of a node, the attempt that its job's client knows. */
export function wholeOf(attempt: Attempt, get: (key: AttemptKey) => Attempt | undefined): Attempt {
  return (attempt.node && get(attempt.node.part)) ?? attempt;
}
