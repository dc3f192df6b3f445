import type { Gryphus, JobId } from '../index.ts';
import { askAtTerminal } from './ask.ts';

/** Runs a command beside a job with this process' streams, as at a terminal if they are one; its exit status. */
export async function typedShell(gryphus: Gryphus, id: JobId, command: string | undefined): Promise<number> {
  const { stdin, stdout, stderr, env } = process;
  const typed = stdin.isTTY && stdout.isTTY;
  const tty = { rows: stdout.rows, cols: stdout.columns, term: env['TERM'] ?? 'dumb' };
  if (typed) stdin.setRawMode(true);
  try {
    return await gryphus.shell({
      id,
      ...(command === undefined ? {} : { command }),
      ...(typed ? { tty } : {}),
      stdin,
      stdout,
      stderr,
      ask: askAtTerminal,
    });
  } finally {
    if (typed) stdin.setRawMode(false);
  }
}
