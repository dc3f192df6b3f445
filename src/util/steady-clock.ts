/**
 * Unix seconds by the machine's clock when this was called, advanced by a clock that cannot be set. So a time given
 * earlier, such as the end of an allocation, neither comes sooner nor recedes.
 */
export function steadyClock(): () => number {
  const ahead = Date.now() - performance.now();
  return () => (ahead + performance.now()) / 1000;
}
