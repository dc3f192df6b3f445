/** The first that an iterable gives, which is then ended; `undefined` where it gives none. */
export async function firstOf<T>(some: AsyncIterable<T>): Promise<T | undefined> {
  for await (const one of some) return one;
  return undefined;
}
