import { shellWords } from '../../util/shell-quote.ts';
import type { Terminal } from './wire.ts';

/**
 * The shell text that becomes somebody's shell; without a command, one that reads what is typed. script(1) gives it a terminal of
 * its own; where that is not installed it goes on without, and says so.
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
    "echo 'gryphus: there is no script(1) here, and so no terminal.' >&2",
    text,
  ].join('\n');
}
