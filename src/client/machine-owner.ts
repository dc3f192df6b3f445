import { setTimeout as delay } from 'node:timers/promises';
import type { Paths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { makePrivateDirs } from '../util/private-file.ts';
import { poolPlaces } from '../pool/host/places.ts';
import { onBattery } from '../pool/owner/idle/battery.ts';
import { allSources } from '../pool/owner/idle/sources.ts';
import { IdleWatch, type Presence } from '../pool/owner/idle/watch.ts';
import type { Off } from '../pool/owner/machine-life.ts';
import { offAt, readOwnerWord, writeOwnerWord } from '../pool/owner/owner-file.ts';

/** What one source of signs of the owner sees on this machine. */
export interface IdleView {
  readonly source: string;
  readonly sees: boolean;
  /** Seconds since the last sign; `undefined`: none so far. */
  readonly idle: number | undefined;
  readonly note: string;
}

/** What is seen of this machine's owner: the smallest idle times, and every source with its own. */
export interface PresenceView {
  /** Seconds; `undefined` if nothing can be seen on this machine. */
  readonly keyboardIdle: number | undefined;
  readonly consoleIdle: number | undefined;
  readonly onBattery: boolean | undefined;
  readonly sources: readonly IdleView[];
}

/** How long sources that answer later are waited for at the first look, in milliseconds. */
const FIRST_MS = 500;

/** What the owner of this machine says to its worker. Needs no daemon: the worker follows what is written. */
export class MachineOwner {
  readonly #paths: Paths;

  constructor(paths: Paths) {
    this.#paths = paths;
  }

  /** Takes this machine out of the pool, for some seconds or until `on`. */
  off(how: Off, seconds?: number): void {
    const since = Date.now() / 1000;
    this.#write({ off: { how, since, ...(seconds === undefined ? {} : { until: since + seconds }) } });
  }

  /** Puts it into the pool again; false if it was there. */
  on(): boolean {
    const was = offAt(readOwnerWord(this.#dir), Date.now() / 1000) !== undefined;
    this.#write({ off: undefined });
    return was;
  }

  /** Leaves this many cores to the owner. */
  keep(cores: number): void {
    this.#write({ keep: cores });
  }

  /** What each source sees, again and again until `signal`. */
  async *idle(signal: AbortSignal, intervalMs = 1000): AsyncGenerator<PresenceView> {
    const settings = await loadSettings(this.#paths);
    const wanted = new Set<string>(settings['pool.idle_sources']);
    const sources = allSources(() => undefined, process.env, { ignored: () => settings['pool.ignore_terminals'] });
    const watch = new IdleWatch(sources, performance.now() / 1000);
    const look = () => watch.look(performance.now() / 1000, wanted);
    try {
      look();
      await delay(FIRST_MS);
      while (!signal.aborted) {
        yield viewOf(look());
        await delay(intervalMs, undefined, { signal }).catch(() => undefined);
      }
    } finally {
      watch.close();
    }
  }

  get #dir(): string {
    return poolPlaces(this.#paths).workerDir;
  }

  #write(change: Parameters<typeof writeOwnerWord>[1] | { readonly off: undefined }): void {
    makePrivateDirs(this.#dir);
    writeOwnerWord(this.#dir, { ...readOwnerWord(this.#dir), ...change });
  }
}

function viewOf({ keyboard, console, readings }: Presence): PresenceView {
  return {
    keyboardIdle: keyboard,
    consoleIdle: console,
    onBattery: onBattery(),
    sources: [...readings].map(([source, { sees, idle, note }]) => ({ source, sees, idle, note })),
  };
}
