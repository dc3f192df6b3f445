import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { IdleSource, Reading } from './source.ts';

/**
 * A process title of sshd: `sshd: alice@pts/3`, `sshd: alice@notty`, `sshd-session: alice [priv]`. Returns the user of
 * a session, not of the process that waits for its log-in.
 */
export function parseSshd(title: string): { readonly user: string; readonly tty: string | undefined } | undefined {
  const found = /^sshd(?:-session)?: ([^\s@[]+)@(\S+)/.exec(title);
  if (!found?.[1]) return undefined;
  return { user: found[1], tty: found[2] === 'notty' ? undefined : found[2] };
}

/** How often processes are looked through, in seconds. */
const EVERY = 4;

/**
 * A new log-in by ssh of somebody else: also one without a terminal. The sessions of the worker's own user without a
 * terminal do not count, since agents use those; with one, the terminal counts.
 */
export class Logins implements IdleSource {
  readonly name = 'ssh';
  readonly #proc: string;
  readonly #uid: number;
  #known = new Set<string>();
  readonly #sessions = new Map<string, string>();
  #last: number | undefined;
  #lookedAt: number | undefined;
  #note = '';

  constructor(proc = '/proc', uid = process.getuid?.() ?? -1) {
    this.#proc = proc;
    this.#uid = uid;
  }

  look(at: number): Reading {
    const before = this.#lookedAt;
    if (before === undefined || at < before || at - before >= EVERY) {
      const trouble = this.#lookThrough(at);
      if (trouble !== undefined) return { sees: false, note: trouble };
    }
    return { sees: true, idle: this.#last === undefined ? undefined : at - this.#last, note: this.#note };
  }

  #lookThrough(at: number): string | undefined {
    let pids: string[];
    try {
      pids = readdirSync(this.#proc).filter((name) => /^[1-9]\d*$/.test(name));
    } catch {
      return `${this.#proc} cannot be read`;
    }
    const now = new Set(pids);
    for (const pid of this.#sessions.keys()) if (!now.has(pid)) this.#sessions.delete(pid);
    // Titles change soon after the start of a process, so a new one is looked at twice.
    const fresh = pids.filter((pid) => !this.#known.has(pid));
    for (const pid of [...fresh, ...this.#young]) this.#notice(pid, at);
    this.#young = new Set(fresh);
    this.#known = now;
    this.#lookedAt = at;
    const users = [...new Set(this.#sessions.values())];
    this.#note = users.length === 0 ? 'nobody else is logged in by ssh' : `logged in: ${users.join(', ')}`;
    return undefined;
  }

  #young: ReadonlySet<string> = new Set();

  #notice(pid: string, at: number): void {
    if (this.#sessions.has(pid)) return;
    try {
      const session = parseSshd(readFileSync(join(this.#proc, pid, 'cmdline'), 'latin1'));
      if (!session) return;
      const owner = statSync(join(this.#proc, pid)).uid;
      if (owner === this.#uid) return;
      this.#sessions.set(pid, session.user);
      if (this.#lookedAt !== undefined) this.#last = at;
    } catch {
      // It has ended.
    }
  }
}
