import { asError } from '../errors.ts';
import type { FetchedFile, FetchOutcome } from '../site/contract.ts';
import { askedFor } from '../staging/asked-for.ts';
import { makeParents, namesKept, place, type Placement, within } from '../staging/place.ts';

/** Puts a task's outputs in their places; returns why they could not be placed, if so. */
export async function placeOutputs(
  cwd: string,
  files: readonly FetchedFile[],
  outputs: readonly string[],
): Promise<string | undefined> {
  const nameOf = askedFor({ outputs });
  const placed: Placement[] = [];
  try {
    for (const { name: offered, kind, path, executable, mode } of files) {
      const name = kind === 'output' ? nameOf(offered) : undefined;
      if (name === undefined) continue;
      const to = within(cwd, name);
      await makeParents(cwd, to);
      const placement = { from: path, to, executable, mode, below: cwd };
      await place(placement);
      placed.push(placement);
    }
    await namesKept(placed);
    return undefined;
  } catch (thrown) {
    return asError(thrown).message;
  }
}

export function notMade({ missing, odd = [], refusal }: Extract<FetchOutcome, { ok: false }>): string {
  const names = [...missing, ...odd.map(({ name }) => name)].map((name) => `'${name}'`);
  return names.length === 0 ? refusal.message : `it did not create ${names.join(', ')}`;
}
