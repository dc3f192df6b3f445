import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { ensurePrivateDir, writeWhole } from '../util/private-file.ts';

/** Pilots that were requested together: the procs of one cluster. */
const BATCH = z.object({
  id: z.string(),
  site: z.string(),
  /** A token for each pilot, by proc. */
  tokens: z.array(z.string()),
  cores: z.number(),
  memoryMb: z.number().optional(),
  walltime: z.number(),
  /** Unix seconds. */
  made: z.number(),
  by: z.enum(['hand', 'factory']),
  /** Unknown until the submit is on disk; until then the batch's name finds the cluster. */
  cluster: z.number().optional(),
  /** Procs whose job is over and whose token was revoked. */
  over: z.array(z.number()),
});
export type GlideinBatch = z.infer<typeof BATCH>;

/** Every batch with a pilot that is not over, in directories (0700) of the state, together with the pilots' files. */
export class Batches {
  readonly #root: string;

  constructor(stateDir: string) {
    this.#root = join(stateDir, 'glideins');
  }

  /** Where a batch's files are; created when it is first saved. */
  dir(id: string): string {
    return join(this.#root, id);
  }

  save(batch: GlideinBatch): void {
    mkdirSync(this.#root, { recursive: true, mode: 0o700 });
    ensurePrivateDir(this.dir(batch.id));
    writeWhole(join(this.dir(batch.id), 'batch.json'), JSON.stringify(batch));
  }

  all(): GlideinBatch[] {
    let names: string[];
    try {
      names = readdirSync(this.#root).sort();
    } catch {
      return [];
    }
    return names.flatMap((name) => {
      try {
        return [BATCH.parse(JSON.parse(readFileSync(join(this.#root, name, 'batch.json'), 'utf8')))];
      } catch {
        // Its creation was interrupted before any pilot was requested.
        return [];
      }
    });
  }

  remove(id: string): void {
    rmSync(this.dir(id), { recursive: true, force: true });
  }
}
