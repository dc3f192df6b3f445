/** Linux's names for its signals (strsignal(3)). */
const NAMES: Readonly<Record<number, string>> = {
  1: 'Hangup',
  2: 'Interrupt',
  3: 'Quit',
  4: 'Illegal instruction',
  5: 'Trace/breakpoint trap',
  6: 'Aborted',
  7: 'Bus error',
  8: 'Floating point exception',
  9: 'Killed',
  10: 'User defined signal 1',
  11: 'Segmentation fault',
  12: 'User defined signal 2',
  13: 'Broken pipe',
  14: 'Alarm clock',
  15: 'Terminated',
  24: 'CPU time limit exceeded',
  25: 'File size limit exceeded',
};

/** `signal 9 (Killed)`. */
export function signalText(signal: number): string {
  const name = NAMES[signal];
  return name === undefined ? `signal ${signal}` : `signal ${signal} (${name})`;
}
