import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import type { IdleSource, Reading } from './source.ts';

/** How often logind and the desktop are asked, in seconds: each question starts a program. */
const ASK_SECONDS = 10;
const TIMEOUT_MS = 4000;

/** `busctl --json=short get-property` prints one line for each property. */
export function parseProperties(text: string): unknown[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => dataOf(line));
}

/** The first value of the answer to a call: `{"type":"t","data":[1234]}`. */
export function parseAnswer(text: string): unknown {
  const data = dataOf(text.trim());
  return Array.isArray(data) ? data[0] : undefined;
}

function dataOf(line: string): unknown {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && 'data' in value ? value.data : undefined;
  } catch {
    return undefined;
  }
}

/** The object paths of the answer to ListSessions, `[[id, uid, user, seat, path], …]`. */
export function parseSessions(text: string): string[] {
  const sessions = parseAnswer(text);
  if (!Array.isArray(sessions)) return [];
  return sessions.flatMap((one: unknown) =>
    Array.isArray(one) && typeof one[4] === 'string' && one[4].startsWith('/') ? [one[4]] : [],
  );
}

/** One session's properties, in the order of PROPERTIES. `now`: Unix seconds. */
export function sessionIdle(values: readonly unknown[], now: number): number | undefined {
  const [kind, type, state, hint, since] = values;
  // Terminals are looked at themselves, and a log-in screen has no owner.
  if (kind !== 'user' || !['x11', 'wayland', 'mir'].includes(String(type)) || state === 'closing') return undefined;
  if (hint !== true) return 0;
  return typeof since === 'number' && since > 0 ? Math.max(0, now - since / 1e6) : undefined;
}

const PROPERTIES = ['Class', 'Type', 'State', 'IdleHint', 'IdleSinceHint'] as const;
const LOGIN = 'org.freedesktop.login1';

/** The desktop's own count of milliseconds, on the session bus: Mutter's, and that of the others. */
const MONITORS = [
  ['org.gnome.Mutter.IdleMonitor', '/org/gnome/Mutter/IdleMonitor/Core', 'org.gnome.Mutter.IdleMonitor', 'GetIdletime'],
  ['org.freedesktop.ScreenSaver', '/org/freedesktop/ScreenSaver', 'org.freedesktop.ScreenSaver', 'GetSessionIdleTime'],
] as const;

export type Bus = (args: readonly string[], address?: string) => Promise<string>;

/** Graphical sessions, X11 and Wayland, by what logind and the desktops' idle monitors say through busctl. */
export class Logind implements IdleSource {
  readonly name = 'logind';
  readonly #bus: Bus;
  readonly #there: () => boolean;
  readonly #changed: () => void;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking = false;
  #heard: { readonly at: number; readonly idle: number | undefined; readonly sessions: number } | undefined;
  #trouble = 'it has not answered yet';

  /** `changed`: called when an answer shows activity. */
  constructor(changed: () => void = () => undefined, bus: Bus = busctl, there: () => boolean = hasBus) {
    this.#changed = changed;
    this.#bus = bus;
    this.#there = there;
  }

  look(at: number): Reading {
    if (!this.#there()) return { sees: false, note: 'there is no system bus here' };
    if (at - this.#askedAt >= ASK_SECONDS && !this.#asking) {
      this.#askedAt = at;
      this.#asking = true;
      void this.#ask(at).finally(() => (this.#asking = false));
    }
    if (!this.#heard) return { sees: false, note: this.#trouble };
    const { at: then, idle, sessions } = this.#heard;
    const now = idle === undefined ? undefined : idle + (at - then);
    return { sees: sessions > 0, idle: now, console: now, note: `${sessions} graphical sessions` };
  }

  async #ask(at: number): Promise<void> {
    try {
      const listed = await this.#bus(['call', LOGIN, '/org/freedesktop/login1', `${LOGIN}.Manager`, 'ListSessions']);
      const sessions = await Promise.all(
        parseSessions(listed).map(async (path) =>
          sessionIdle(
            parseProperties(await this.#bus(['get-property', LOGIN, path, `${LOGIN}.Session`, ...PROPERTIES])),
            Date.now() / 1000,
          ),
        ),
      );
      const idles = [...sessions, ...(await this.#monitors())].filter((idle) => idle !== undefined);
      // A session that never says that it is idle is outvoted by the monitor that counts.
      const counted = idles.filter((idle) => idle > 0);
      const idle = idles.length === 0 ? undefined : Math.min(...(counted.length > 0 ? counted : idles));
      const before = this.#heard?.idle;
      this.#heard = { at, idle, sessions: idles.length };
      if (idle !== undefined && (before === undefined || idle < before)) this.#changed();
    } catch (thrown) {
      this.#heard = undefined;
      this.#trouble = thrown instanceof Error ? (thrown.message.split('\n')[0] ?? '') : String(thrown);
    }
  }

  /** Of the sessions whose bus we may use. */
  async #monitors(): Promise<(number | undefined)[]> {
    const buses = sessionBuses();
    const asked = buses.flatMap((address) =>
      MONITORS.map(async (monitor) => {
        try {
          const ms = parseAnswer(await this.#bus(['call', ...monitor], address));
          return typeof ms === 'number' ? ms / 1000 : undefined;
        } catch {
          return undefined;
        }
      }),
    );
    return Promise.all(asked);
  }
}

function hasBus(): boolean {
  return existsSync('/run/dbus/system_bus_socket');
}

function sessionBuses(): string[] {
  try {
    return readdirSync('/run/user').flatMap((uid) =>
      existsSync(`/run/user/${uid}/bus`) ? [`unix:path=/run/user/${uid}/bus`] : [],
    );
  } catch {
    return [];
  }
}

function busctl(args: readonly string[], address?: string): Promise<string> {
  const where = address === undefined ? [] : [`--address=${address}`];
  return new Promise((resolve, reject) => {
    execFile(
      'busctl',
      ['--json=short', '--timeout=3', ...where, ...args],
      { timeout: TIMEOUT_MS, encoding: 'utf8' },
      (error, stdout) => (error ? reject(error) : resolve(stdout)),
    );
  });
}
