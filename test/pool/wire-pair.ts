import { Duplex } from 'node:stream';

/** Both ends of a connection. */
export function pair(): [Duplex, Duplex] {
  const ends: Duplex[] = [];
  for (const other of [1, 0]) {
    const end: Duplex = new Duplex({
      read: () => undefined,
      write(chunk, _encoding, done) {
        ends[other]?.push(chunk);
        done();
      },
      final(done) {
        ends[other]?.push(null);
        done();
      },
    });
    ends.push(end);
  }
  return [ends[0] as Duplex, ends[1] as Duplex];
}
