/** The first item of an iterable, which is then closed; `undefined` if it is empty. */
export async function firstOf<T>(some: AsyncIterable<T>): Promise<T | undefined> {
  for await (const one of some) return one;
  return undefined;
}
