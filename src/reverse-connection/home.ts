import { readFileSync } from 'node:fs';
import * as z from 'zod';

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

/** What a pilot takes with it to find home, in the configuration of its worker: a file that others cannot read. */
export const HOME = z.object({
  worker: z.string(),
  key: z.string().regex(/^[0-9a-f]{64}$/),
  /** Where the site's ways stand now, in a file that the agent renews: ports change when a connection is made anew. */
  waysFile: z.string().optional(),
  /** The ways where there is no such file, in the order to try them. */
  ways: z.array(WAY).default([]),
});
export type Home = z.infer<typeof HOME>;

/** The ways that there are now: those of the agent's file where it can be read, else those that were taken along. */
export function waysNow(home: Home): readonly Way[] {
  if (home.waysFile === undefined) return home.ways;
  try {
    return z.array(WAY).parse(JSON.parse(readFileSync(home.waysFile, 'utf8')));
  } catch {
    return home.ways;
  }
}
