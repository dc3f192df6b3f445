import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { writeWhole } from '../../util/private-file.ts';

const count = z.int().nonnegative();

/** What the owner of a machine told its worker by `gryphus pool off` and `pool keep`. */
const ownerWord = z.strictObject({
  off: z
    .strictObject({
      how: z.enum(['now', 'graceful', 'peaceful']),
      /** Unix seconds. */
      since: z.number(),
      until: z.number().optional(),
    })
    .optional(),
  /** Cores that the pool leaves to the owner. */
  keep: count.optional(),
});
export type OwnerWord = Readonly<z.infer<typeof ownerWord>>;

/** A file of the worker's directory, which the owner's commands write and the worker follows. */
export function ownerFile(workerDir: string): string {
  return join(workerDir, 'owner.json');
}

/** Nothing was told, if the file does not exist. Throws if it cannot be understood. */
export function readOwnerWord(workerDir: string): OwnerWord {
  let text: string;
  try {
    text = readFileSync(ownerFile(workerDir), 'utf8');
  } catch {
    return {};
  }
  return ownerWord.parse(JSON.parse(text));
}

export function writeOwnerWord(workerDir: string, word: OwnerWord): void {
  writeWhole(ownerFile(workerDir), `${JSON.stringify(ownerWord.parse(word))}\n`);
}

/** How the machine is out of the pool at this time (Unix seconds), if it is. */
export function offAt({ off }: OwnerWord, now: number): NonNullable<OwnerWord['off']> | undefined {
  return off && (off.until === undefined || now < off.until) ? off : undefined;
}
