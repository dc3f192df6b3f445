import type { Attrs } from '../job/attrs.ts';
import { GryphusError } from '../errors.ts';
import type { ProcInput } from './api.ts';
import { encodeJson, encodeJob, ownAttrs, priorityOf } from './record.ts';
import type { QueueContext } from './context.ts';

interface Placed {
  readonly manager: string;
  readonly site: string;
}

interface Waiting extends Placed {
  readonly proc: number;
  readonly state: 'idle' | 'held' | 'removed';
  readonly priority: number;
  readonly own: string;
}

/** New procs of one cluster, collected for one write in the format that the scripts' put() reads. */
export class ProcBatch {
  /** `[from, to)` ranges of all procs added so far. */
  readonly ranges: [number, number][] = [];
  /** Those of them that are removed as they are created. */
  readonly removed: number[] = [];
  total = 0;
  readonly #context: QueueContext;
  readonly #shared: Attrs;
  readonly #place: Partial<Placed>;
  #next: number;
  #waiting: Waiting[] = [];

  constructor(context: QueueContext, shared: Attrs, place: Partial<Placed>, nextProc: number) {
    this.#context = context;
    this.#shared = shared;
    this.#place = place;
    this.#next = nextProc;
  }

  get size(): number {
    return this.#waiting.length;
  }

  get nextProc(): number {
    return this.#next;
  }

  add(input: ProcInput): void {
    const proc = input.proc ?? this.#next;
    if (!Number.isSafeInteger(proc) || proc < this.#next) {
      throw new GryphusError(
        'bad-input',
        `Proc ${proc} comes after proc ${this.#next - 1} in one submit: they must increase.`,
      );
    }
    const said = (name: string) => input.attrs[name] ?? this.#shared.get(name);
    this.#waiting.push({
      proc,
      state: input.state ?? (said('JobStatus') === '5' ? 'held' : 'idle'),
      manager: input.manager ?? this.#place.manager ?? '',
      site: input.site ?? this.#place.site ?? '',
      priority: priorityOf(said('JobPrio')),
      own: encodeJson(ownAttrs(input.attrs, this.#shared)),
    });
    if (input.state === 'removed') this.removed.push(proc);
    this.#next = proc + 1;
    this.total += 1;
    const last = this.ranges.at(-1);
    if (last?.[1] === proc) last[1] = proc + 1;
    else this.ranges.push([proc, proc + 1]);
  }

  /** The input of put(), for the procs added since the last call. */
  async take(): Promise<(string | number)[]> {
    const procs = this.#waiting;
    this.#waiting = [];
    const numbers = await this.#context.names.numbers(procs.flatMap(({ manager, site }) => [manager, site]));
    const since = Math.floor(this.#context.now() / 1000);
    const pairs: (string | number)[] = [];
    const groups = new Map<string, { readonly head: readonly string[]; readonly procs: number[] }>();
    for (const { proc, state, priority, own, ...names } of procs) {
      const manager = numbers.get(names.manager) ?? '0';
      const site = numbers.get(names.site) ?? '0';
      pairs.push(proc, encodeJob({ state, manager, site, priority, attempt: 0, since, own }));
      const head = [manager, site, String(priority), state];
      const key = head.join('|');
      const group = groups.get(key);
      if (group) group.procs.push(proc);
      else groups.set(key, { head, procs: [proc] });
    }
    const tail = [...groups.values()].flatMap((group) => [...group.head, group.procs.length, ...group.procs]);
    return [procs.length, ...pairs, groups.size, ...tail];
  }
}
