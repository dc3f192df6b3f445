import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Where any of the secrets appears that must not appear anywhere: files below `dirs`, and what processes expose. */
export function findSecrets(secrets: Readonly<Record<string, string>>, dirs: readonly string[]): string[] {
  const wanted = Object.entries(secrets).flatMap(([name, secret]) => [
    [name, Buffer.from(secret)] as const,
    [`${name} in base64`, Buffer.from(Buffer.from(secret).toString('base64').replace(/=+$/, '').slice(0, -1))] as const,
  ]);
  const found: string[] = [];
  const look = (where: string, bytes: Buffer) => {
    for (const [name, secret] of wanted) if (bytes.includes(secret)) found.push(`${name}: ${where}`);
  };
  for (const dir of dirs) for (const file of filesBelow(dir)) look(file, readFileSync(file));
  for (const { where, bytes } of processes()) look(where, bytes);
  return found;
}

/** Command lines and environments of all processes but this one, whose environment the test itself set. */
function processes(): { where: string; bytes: Buffer }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) =>
      ['cmdline', 'environ'].flatMap((what) => {
        try {
          return [{ where: `/proc/${pid}/${what}`, bytes: readFileSync(`/proc/${pid}/${what}`) }];
        } catch {
          return [];
        }
      }),
    );
}

export function filesBelow(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile());
}
