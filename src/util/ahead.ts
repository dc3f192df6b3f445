/**
 * The items of a source that runs up to so many of them ahead of its reader, so that it waits for one thing while the reader waits for
 * another. What the source rejects with, the reader gets in its turn.
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
