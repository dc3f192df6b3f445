import { readFileSync } from 'node:fs';

/**
 * The process whose pid a file holds; `undefined` where there is no such file, or it holds no pid of an ordinary process.
 * A daemon may be caught between making its file and writing it, and a full disk leaves it empty: read as a number
 * that is 0, which kill(2) takes for the caller's own process group.
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
