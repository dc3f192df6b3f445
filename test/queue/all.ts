/** Everything that an iterable yields. */
export async function all<T>(some: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of some) found.push(one);
  return found;
}

/** `count` procs that differ in their arguments. */
export function* procs(count: number): Generator<{ attrs: { Args: string } }> {
  for (let i = 0; i < count; i++) yield { attrs: { Args: `"${i}"` } };
}
