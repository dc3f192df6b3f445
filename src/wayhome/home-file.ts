import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import { readSecretFile, wipe } from '../util/secret-file.ts';

/** One way from a worker to its agent, as the worker goes it. */
export const WAY = z.discriminatedUnion('kind', [
  /** A socket file that leads home: on this machine, or on the login node where the agent's ssh connection ends. */
  z.object({ kind: z.literal('socket'), path: z.string() }),
  /** A port of the agent itself, or of the login node. `host` as the worker's node resolves it. */
  z.object({ kind: z.literal('port'), host: z.string(), port: z.number().int() }),
  /** Files in a directory that both sides see. */
  z.object({ kind: z.literal('mailbox'), directory: z.string() }),
]);
export type Way = z.infer<typeof WAY>;

/** What a pilot takes with it to find home. The file is the token: 0600, and on no command line. */
export const HOME = z.object({
  worker: z.string(),
  key: z.string().regex(/^[0-9a-f]{64}$/),
  /** Where the site's ways stand now, in a file that the agent renews: ports change when a connection is made anew. */
  waysFile: z.string().optional(),
  /** The ways where there is no such file, in the order to try them. */
  ways: z.array(WAY).default([]),
});
export type Home = z.infer<typeof HOME>;

/** Reads a home file; 'not-permitted' where others can read it, 'bad-input' where it is no home file. */
export function readHome(path: string): Home {
  const bytes = readSecretFile(path, 'home file');
  try {
    return HOME.parse(JSON.parse(bytes.toString('utf8')));
  } catch (cause) {
    throw new GryphusError('bad-input', `${path} is no home file of a worker.`, { cause });
  } finally {
    wipe(bytes);
  }
}

/** The ways that there are now: those of the agent's file where it can be read, else those that were taken along. */
export function waysNow(home: Home): readonly Way[] {
  if (home.waysFile === undefined) return home.ways;
  try {
    return z.array(WAY).parse(JSON.parse(readFileSync(home.waysFile, 'utf8')));
  } catch {
    return home.ways;
  }
}
