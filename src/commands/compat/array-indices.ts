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
