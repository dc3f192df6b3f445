import type { Duplex } from 'node:stream';

/** Passes bytes on both ways until either side ends; a half that ends is passed on, a cut ends both at once. */
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
