/** `1-3,7`, `1-9:2`, up to a million. */
export function expand(range: string): Set<number> {
  const found = new Set<number>();
  for (const part of range.replace(/%.*/, '').split(',')) {
    const [span = '', step = '1'] = part.split(':');
    const [from = 0, to = from] = span.split('-').map(Number);
    for (let i = from; i <= to && found.size < 1_000_000; i += Math.max(1, Number(step))) found.add(i);
  }
  return found;
}

/** The same in order, from the one at this place on. */
export function* indicesFrom(range: string, place: number): Generator<number> {
  let left = place;
  let last = -1;
  for (const part of range.replace(/%.*/, '').split(',')) {
    const [span = '', step = '1'] = part.split(':');
    const [from = 0, to = from] = span.split('-').map(Number);
    // One that is listed twice counts once.
    if (from <= last) return yield* [...expand(range)].slice(place);
    last = to;
    const by = Math.max(1, Number(step));
    const count = Math.floor((to - from) / by) + 1;
    for (let i = from + left * by; i <= to; i += by) yield i;
    left = Math.max(0, left - count);
  }
}

/** `1-3,7`: indices in order as ranges. */
export function spans(indices: Iterable<number>): string {
  const parts: string[] = [];
  let from: number | undefined;
  let to = 0;
  const close = () => {
    if (from !== undefined) parts.push(from === to ? `${from}` : `${from}-${to}`);
  };
  for (const index of indices) {
    if (from === undefined || index !== to + 1) {
      close();
      from = index;
    }
    to = index;
  }
  close();
  return parts.join(',');
}
