import type { Duplex } from 'node:stream';
import { asError } from '../../errors.ts';
import { LetterLink } from './letters.ts';
import { letterFile, markFile, parseBoxFile } from './names.ts';

/** What the agent wants of a site's mailboxes in one round. */
export interface MailboxRequest {
  readonly put: readonly { readonly worker: string; readonly name: string; readonly bytes: Buffer }[];
  readonly del: readonly { readonly worker: string; readonly name: string }[];
  readonly drop: readonly string[];
  /** Also report links that an agent has already taken. */
  readonly inventory: boolean;
}

export interface FoundLetter {
  readonly worker: string;
  readonly name: string;
  readonly bytes: Buffer;
}

export interface MailboxStoreOptions {
  /** One round at the login node. A request may be repeated if its answer was lost. */
  readonly exchange: (request: MailboxRequest) => Promise<readonly FoundLetter[]>;
  /** A worker has opened a link. */
  readonly onLink: (worker: string, link: Duplex) => void;
  /** Called after each round, with the error if it failed. */
  readonly onRound?: (why: Error | undefined) => void;
  /**
   * The intervals between looks into the boxes, from the shortest to the longest, while nothing is new. Milliseconds.
   */
  readonly soonestMs?: number;
  readonly latestMs?: number;
  /** Replaces `latestMs` while no worker has a link. */
  readonly idleMs?: number;
}

interface Box {
  readonly link: string;
  readonly letters: LetterLink;
  /** The mark is in the box, so letters may be read. */
  taken: boolean;
  /** Letters that were read and will be deleted in the next round. */
  readonly read: Set<string>;
}

/**
 * The agent's end of all links by letters at one site. A failed round loses or doubles nothing: letters stay in the box
 * until the next round deletes them, and letters are reposted under the same numbers.
 */
export class MailboxStore {
  readonly #options: MailboxStoreOptions;
  readonly #boxes = new Map<string, Box>();
  /** Marks and stale files by worker, to be written or deleted in the next round. */
  readonly #over = new Map<string, Set<string>>();
  readonly #stale = new Map<string, Set<string>>();
  readonly #dropped = new Set<string>();
  #wake: () => void = () => undefined;
  /** Links from before this process. */
  readonly #foreign = new Set<string>();
  #inventoried = false;
  #closed = false;

  constructor(options: MailboxStoreOptions) {
    this.#options = options;
  }

  /** Runs until `close`. */
  async run(): Promise<void> {
    const { soonestMs = 50, latestMs = 2000, idleMs = Math.max(latestMs, 10_000), onRound } = this.#options;
    for (let pause = soonestMs; !this.#closed; ) {
      let news = false;
      try {
        news = await this.#round();
        onRound?.(undefined);
      } catch (thrown) {
        onRound?.(asError(thrown));
      }
      pause = news ? soonestMs : Math.min(this.#boxes.size > 0 ? latestMs : idleMs, pause * 1.5);
      if (!this.#closed) await this.#pause(pause, news ? 0 : soonestMs);
    }
    for (const { letters } of this.#boxes.values()) letters.destroy();
  }

  /** Deletes the box of a worker that is gone. */
  drop(worker: string): void {
    this.#boxes.get(worker)?.letters.destroy();
    this.#boxes.delete(worker);
    this.#over.delete(worker);
    this.#stale.delete(worker);
    this.#dropped.add(worker);
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  async #round(): Promise<boolean> {
    const posted = new Map<Box, number>();
    const put: { worker: string; name: string; bytes: Buffer }[] = [];
    const del: { worker: string; name: string }[] = [];
    for (const [worker, box] of this.#boxes) {
      for (const { seq, bytes } of box.letters.outgoing()) {
        put.push({ worker, name: letterFile('down', box.link, seq), bytes });
        posted.set(box, seq);
      }
      for (const name of box.read) del.push({ worker, name });
    }
    const marks = [...this.#over].flatMap(([worker, links]) => [...links].map((link) => ({ worker, link })));
    for (const { worker, link } of marks) put.push({ worker, name: markFile('over', link), bytes: Buffer.alloc(0) });
    const stale = [...this.#stale].flatMap(([worker, names]) => [...names].map((name) => ({ worker, name })));
    const drop = [...this.#dropped];
    const fresh = [...this.#boxes].filter(([, box]) => !box.taken);
    for (const [worker, { link }] of fresh) put.push({ worker, name: markFile('taken', link), bytes: Buffer.alloc(0) });
    const inventory = !this.#inventoried;
    const found = await this.#options.exchange({ put, del: [...del, ...stale], drop, inventory });
    this.#inventoried = true;
    for (const [, box] of fresh) box.taken = true;
    for (const [box, seq] of posted) box.letters.posted(seq);
    for (const { worker, name } of del) this.#boxes.get(worker)?.read.delete(name);
    for (const { worker, link } of marks) this.#over.get(worker)?.delete(link);
    for (const { worker, name } of stale) this.#stale.get(worker)?.delete(name);
    for (const worker of drop) this.#dropped.delete(worker);
    this.#forgetEnded();
    for (const one of inOrder(found)) this.#arrived(one);
    return put.length + found.length > 0;
  }

  #arrived({ worker, name, bytes }: FoundLetter): void {
    if (this.#dropped.has(worker)) return;
    const file = parseBoxFile(name);
    if (file?.kind === 'taken') this.#foreign.add(file.link);
    if (
      file === undefined ||
      file.kind === 'over' ||
      file.kind === 'taken' ||
      (file.kind === 'letter' && file.direction === 'down')
    )
      return;
    let box = this.#boxes.get(worker);
    if (file.kind === 'gone') {
      if (box?.link === file.link) box.letters.destroy();
      add(this.#stale, worker, name);
      return;
    }
    if (box?.link !== file.link && file.seq === 0 && !this.#foreign.has(file.link)) {
      box?.letters.destroy();
      box = { link: file.link, letters: new LetterLink(() => this.#wake()), taken: false, read: new Set() };
      this.#boxes.set(worker, box);
      this.#options.onLink(worker, box.letters);
    }
    if (box?.link !== file.link) {
      add(this.#over, worker, file.link);
      add(this.#stale, worker, name);
      return;
    }
    // Letters that the reader is not ready for stay in the box.
    if (!box.taken) return;
    if (box.letters.full && file.seq >= box.letters.expected) return;
    box.letters.arrived({ seq: file.seq, bytes });
    box.read.add(name);
  }

  /** Forgets links that ended on our side, telling the worker unless it ended the link itself. */
  #forgetEnded(): void {
    for (const [worker, box] of this.#boxes) {
      if (!box.letters.destroyed || box.read.size > 0) continue;
      if (!box.letters.done && box.letters.outgoing().length > 0 && !box.letters.errored) continue;
      if (!box.letters.done) add(this.#over, worker, box.link);
      this.#boxes.delete(worker);
    }
  }

  #pause(ms: number, leastMs: number): Promise<void> {
    return new Promise((resolve) => {
      const began = performance.now();
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        // Collects many small writes into one round.
        setTimeout(resolve, Math.max(0, Math.min(5, leastMs - (performance.now() - began))));
      };
    });
  }
}

function add(map: Map<string, Set<string>>, key: string, value: string): void {
  const set = map.get(key);
  if (set) set.add(value);
  else map.set(key, new Set([value]));
}

function inOrder(found: readonly FoundLetter[]): FoundLetter[] {
  const seq = (name: string): number => {
    const file = parseBoxFile(name);
    if (file?.kind === 'letter') return file.seq;
    return file?.kind === 'taken' ? -1 : Number.POSITIVE_INFINITY;
  };
  return [...found].sort((a, b) => seq(a.name) - seq(b.name));
}
