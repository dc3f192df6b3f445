/**
 * Unix seconds by the machine's clock when this was called, advanced by a clock that cannot be set. So a time given
 * earlier, such as the end of an allocation, neither comes sooner nor recedes. `passed`: that clock, in milliseconds.
 */
export function steadyClock(passed: () => number = () => performance.now()): () => number {
  const ahead = Date.now() - passed();
  return () => (ahead + passed()) / 1000;
}
