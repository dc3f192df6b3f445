import { readFileSync } from 'node:fs';
import { shellQuote, shellWords } from '../util/shell-quote.ts';

/** A batch script of Slurm's whose arguments are a command, which runs once for each task; `step`: options of srun. */
export function stepScript(step: readonly string[]): string {
  const body = readFileSync(new URL('srun-step.sh', import.meta.url), 'utf8');
  return `#!/bin/sh\nstep=${shellQuote(shellWords(step))}\n${body}`;
}
