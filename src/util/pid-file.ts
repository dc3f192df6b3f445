import { readFileSync } from 'node:fs';

/**
 * The process id in a file; `undefined` if there is no such file, or no ordinary process's id in it. The file may be
 * empty, if a daemon was interrupted between creating and writing it, or if the disk is full. Read as a number that
 * would be 0, which kill(2) takes for the caller's own process group.
 */
export function readPid(file: string): number | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
  const pid = Number(/^\s*([0-9]{1,10})\s*$/.exec(text)?.[1]);
  return pid > 1 ? pid : undefined;
}
