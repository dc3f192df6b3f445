import { shellWords } from '../../util/shell-quote.ts';
import type { Terminal } from './wire.ts';

/**
 * The shell text for an interactive session beside a job; without a command, a shell that reads its standard input.
 * script(1) provides a terminal; where it is not installed, the session continues without one and says so.
 */
export function shellText(command: string | undefined, tty: Terminal | undefined): string {
  const text = command ?? 'exec "${SHELL:-/bin/sh}"';
  if (!tty) return text;
  const sized = `stty rows ${tty.rows} cols ${tty.cols} 2>/dev/null; ${text}`;
  const inside = shellWords(['exec', '/bin/sh', '-c', sized]);
  return [
    'if command -v script >/dev/null 2>&1; then',
    `  exec script -qefc ${shellWords([inside])} /dev/null`,
    'fi',
    "echo 'gryphus: script(1) is not installed here, so there is no terminal.' >&2",
    text,
  ].join('\n');
}
