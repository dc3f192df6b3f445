import { type FoundBatchSystem, LOOK, readFound } from '../backends/found.ts';
import type { Paths } from '../config/paths.ts';
import type { SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { transportTo } from '../open-site/open-site.ts';
import { promptOf } from './prompt.ts';
import type { AskUser } from './types.ts';

/** In milliseconds; each command that is tried there has 20 s of its own. */
const LOOK_MS = 150_000;

/**
 * The batch systems that a machine has, the best choice first; empty: plain processes. Rejects if the machine cannot be
 * reached or its answer cannot be read.
 */
export async function findBatch(record: SiteRecord, paths: Paths, ask?: AskUser): Promise<readonly FoundBatchSystem[]> {
  const transport = await transportTo(record, { prompt: promptOf(ask), paths });
  try {
    const script = `${record.prelude === undefined ? '' : `${record.prelude}\n`}${LOOK}\n`;
    const { stdout, stderr } = await transport.run('sh -s', { stdin: script, timeoutMs: LOOK_MS });
    const found = readFound(stdout.toString('utf8'));
    if (found !== undefined) return found;
    const said = stderr.toString('utf8').trim().split('\n').at(-1) ?? '';
    throw new GryphusError('protocol-error', `${record.name} did not report which batch system it has: ${said}.`, {
      suggestions: ['Name it, for example: --batch slurm.'],
    });
  } finally {
    await transport.close();
  }
}
