/**
 * Yields the items of a source that may run up to `most` items ahead of the reader, so that both can wait at the same time. An error of
 * the source is thrown after the items before it.
 */
export async function* ahead<T>(source: AsyncIterable<T>, most: number): AsyncGenerator<T> {
  const items = source[Symbol.asyncIterator]();
  const coming: Promise<IteratorResult<T>>[] = [];
  const ask = (): void => {
    const next = items.next();
    next.catch(() => undefined);
    coming.push(next);
  };
  try {
    for (;;) {
      while (coming.length < most) ask();
      const next = await coming.shift();
      if (!next || next.done) return;
      yield next.value;
    }
  } finally {
    await items.return?.();
  }
}
