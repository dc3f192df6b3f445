import { Flight } from '../../util/flight.ts';

/** Bytes in one request for a part of a file. */
export const PIECE = 256 << 10;

/**
 * The bytes from one offset of a file at the other side to another, in order. As many requests are under way as the
 * line can carry, so that a file does not take longer because the other side is far away. The last piece is shorter than
 * its request if the file is.
 */
export async function* pieces(
  ask: (offset: number, bytes: number) => Promise<Buffer>,
  from: number,
  to: number,
): AsyncGenerator<Buffer> {
  const flight = new Flight();
  const under: { readonly wanted: number; readonly coming: Promise<Buffer> }[] = [];
  let next = from;
  for (;;) {
    while (next < to && under.length < flight.most) {
      const wanted = Math.min(PIECE, to - next);
      const coming = timed(flight, ask(next, wanted));
      // The loop below handles the first failure; later ones only repeat it.
      coming.catch(() => undefined);
      under.push({ wanted, coming });
      next += wanted;
    }
    const first = under.shift();
    if (first === undefined) return;
    const bytes = await first.coming;
    yield bytes;
    if (bytes.length < first.wanted) return;
  }
}

async function timed<T>(flight: Flight, request: Promise<T>): Promise<T> {
  const begun = performance.now();
  const answer = await request;
  flight.answered(performance.now() - begun);
  return answer;
}
