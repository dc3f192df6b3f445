import type { Channel } from './frames.ts';

/**
 * If no byte arrives during this many intervals, the connection is considered dead. Intervals are counted rather than
 * time, since nothing could arrive while this process was stopped.
 */
const SILENT = 3;

/** Pings over one connection at a time, and what their answers tell. */
export class Pings {
  readonly #sentAt = new Map<number, number>();
  #first: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;
  #last = 0;
  readonly #clock: () => number;

  /** `clock`: milliseconds, by a clock that cannot be set. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /**
   * Sends a ping each interval over the channel, until `stop`; closes it with the message if nothing comes back. All connections of a
   * process that have the same interval ping together, so that it wakes once for all. While a connection has a longer `restMs`, the pings
   * that would come sooner are left out. Whoever leaves out each second one too is still heard in every other interval; of a longer
   * rest, only the intervals after a ping count.
   */
  start(
    channel: Pick<Channel<never, never>, 'heardAt' | 'close'>,
    everyMs: number,
    send: (n: number) => void,
    message: string,
    restMs: () => number = () => 0,
  ): void {
    this.stop();
    this.#sentAt.clear();
    let silent = 0;
    let before = 0;
    let asked = false;
    let left = 0;
    const ping = (): void => {
      const rest = Math.max(1, Math.floor(restMs() / everyMs));
      if (channel.heardAt > before) {
        silent = 0;
        asked = false;
      } else if (asked || rest <= 2) silent += 1;
      before = channel.heardAt;
      if (silent > SILENT) return channel.close(message);
      left += 1;
      if (left < rest) return;
      left = 0;
      asked = true;
      this.send(send);
    };
    this.#first = setTimeout(
      () => {
        this.#timer = setInterval(ping, everyMs);
        ping();
      },
      everyMs - (performance.now() % everyMs),
    );
  }

  /** A ping at once. */
  send(send: (n: number) => void): void {
    const n = ++this.#last;
    this.#sentAt.set(n, this.#clock());
    send(n);
  }

  stop(): void {
    clearTimeout(this.#first);
    clearInterval(this.#timer);
  }

  /** When the ping that is answered was sent, by that clock; `undefined`: it was not. */
  answered(n: number): number | undefined {
    const at = this.#sentAt.get(n);
    this.#sentAt.delete(n);
    return at;
  }
}

/** How long to wait before dialling again after so many failures, milliseconds: longer each time, and never the same for all. */
export function redialMs(failures: number, { first, longest }: { first: number; longest: number }): number {
  return Math.min(longest, first * 2 ** failures) * (0.75 + Math.random() / 2);
}
