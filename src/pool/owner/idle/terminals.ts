import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type IdleSource, LastChange, type Reading } from './source.ts';

/** How often the machine's own devices are looked at, in seconds; pseudo-terminals are looked at each time. */
const CONSOLES = 4;

export interface TerminalsOptions {
  readonly dev?: string;
  /** Names, as `pts/3` or `tty1`, that do not count; `*` at the end stands for many. */
  readonly ignored?: () => readonly string[];
  /** Whether a terminal belongs to something that the worker runs. `device`: its device number. */
  readonly isOurs?: (device: number) => boolean;
}

/**
 * Terminals, by the time of the last read: the kernel sets a terminal's atime, in steps of eight seconds, when a program
 * reads what was typed. Output does not change it. utmp is not asked: many systems have none.
 */
export class Terminals implements IdleSource {
  readonly name = 'terminals';
  readonly #options: TerminalsOptions;
  readonly #changes = new LastChange<string>();
  readonly #ours = new Map<string, boolean>();
  #last: { at: number; name: string } | undefined;
  #lastConsole: number | undefined;
  #looked = false;
  /** The devices of the machine itself, at the last look at them: there are dozens, and few are ever open. */
  #consoles: ReadonlySet<string> = new Set();
  #consolesAt = Number.NEGATIVE_INFINITY;

  constructor(options: TerminalsOptions = {}) {
    this.#options = options;
  }

  look(at: number): Reading {
    const { dev = '/dev' } = this.#options;
    const isDue = at < this.#consolesAt || at - this.#consolesAt >= CONSOLES;
    const consoles = isDue ? consolesIn(dev) : [];
    if (consoles === undefined) return { sees: false, note: `${dev} cannot be read` };
    const wall = Date.now() / 1000;
    const there = new Set(isDue ? [] : this.#consoles);
    for (const name of [...consoles, ...ptsIn(dev)]) {
      if (isIgnored(name, this.#options.ignored?.() ?? [])) continue;
      const found = statSync(join(dev, name), { throwIfNoEntry: false });
      if (!found?.isCharacterDevice()) continue;
      // A name is used again for another terminal, whose inode was made later.
      const key = `${name} ${found.ino} ${found.birthtimeMs}`;
      there.add(key);
      // A terminal that has just been opened is a sign itself, unless it was there before the first look.
      const age = Math.max(0, wall - found.atimeMs / 1000);
      const before = this.#looked && !this.#changes.has(key) ? at : at - age;
      const changed = this.#changes.note(key, found.atimeMs, at, before) ?? at;
      if (this.#isOurs(key, found.rdev, changed > (this.#last?.at ?? Number.NEGATIVE_INFINITY))) continue;
      if (!this.#last || changed > this.#last.at) this.#last = { at: changed, name };
      if (isConsole(name)) this.#lastConsole = Math.max(this.#lastConsole ?? changed, changed);
    }
    if (isDue) {
      this.#consoles = new Set([...there].filter((key) => !key.startsWith('pts/')));
      this.#consolesAt = at;
    }
    this.#changes.keepOnly(there);
    for (const key of this.#ours.keys()) if (!there.has(key)) this.#ours.delete(key);
    this.#looked = true;
    return {
      sees: true,
      idle: this.#last && at - this.#last.at,
      console: this.#lastConsole === undefined ? undefined : at - this.#lastConsole,
      note:
        there.size === 0
          ? 'no terminal is open'
          : `${there.size} looked at${this.#last ? `, last ${this.#last.name}` : ''}`,
    };
  }

  /** Asked once for each terminal, and only when it would count. */
  #isOurs(key: string, device: number, counts: boolean): boolean {
    const known = this.#ours.get(key);
    if (known !== undefined || !counts) return known ?? false;
    const ours = this.#options.isOurs?.(device) ?? false;
    this.#ours.set(key, ours);
    return ours;
  }
}

function consolesIn(dev: string): string[] | undefined {
  try {
    return readdirSync(dev).filter((name) => /^tty(\d+|[A-Za-z]+\d+)$/.test(name) && name !== 'tty0');
  } catch {
    return undefined;
  }
}

function ptsIn(dev: string): string[] {
  try {
    return readdirSync(join(dev, 'pts')).flatMap((name) => (/^\d+$/.test(name) ? [`pts/${name}`] : []));
  } catch {
    return [];
  }
}

function isConsole(name: string): boolean {
  return /^tty\d+$/.test(name);
}

export function isIgnored(name: string, patterns: readonly string[]): boolean {
  const last = patterns.findLast((pattern) => {
    const plain = pattern.replace(/^!/, '');
    return plain.endsWith('*') ? name.startsWith(plain.slice(0, -1)) : name === plain;
  });
  return last !== undefined && !last.startsWith('!');
}
