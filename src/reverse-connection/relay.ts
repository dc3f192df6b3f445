import type { Duplex } from 'node:stream';

/** Passes bytes both ways until either side ends. A half-close is passed on; a broken connection ends both sides. */
export function relay(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy());
    from.on('close', () => {
      if (!from.readableEnded) to.destroy();
    });
    from.pipe(to);
  }
}
