/** How many exchanges with one site run at once; each starts a process there. */
const AT_ONCE = 6;

/** Runs `act` for every item, a few at a time. A rejection stops further starts and is thrown once the others end. */
export async function inParallel<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items];
  let failure: { readonly thrown: unknown } | undefined;
  const worker = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined && failure === undefined; item = waiting.shift()) {
      try {
        await act(item);
      } catch (thrown) {
        failure ??= { thrown };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker));
  if (failure) throw failure.thrown;
}
