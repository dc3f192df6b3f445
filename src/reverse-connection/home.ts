import { readFileSync } from 'node:fs';
import * as z from 'zod';

/** One way from a worker to its agent, from the worker's side. */
export const WAY = z.discriminatedUnion('kind', [
  /** A socket file that leads home: on this machine, or on the login node where the agent's ssh connection ends. */
  z.object({ kind: z.literal('socket'), path: z.string() }),
  /** A port of the agent itself, or of the login node; the worker's node must be able to resolve `host`. */
  z.object({
    kind: z.literal('port'),
    host: z.string(),
    port: z.number().int(),
    /** The agent's own, which leads to the central manager only. */
    own: z.literal(true).optional(),
  }),
  /** Files in a directory that both sides can see. */
  z.object({ kind: z.literal('mailbox'), directory: z.string() }),
]);
export type Way = z.infer<typeof WAY>;

/** What a pilot needs to find home, in its worker's configuration: a file that others cannot read. */
export const HOME = z.object({
  worker: z.string(),
  key: z.string().regex(/^[0-9a-f]{64}$/),
  /** A file with the site's current ways, which the agent updates: ports change when a connection is made anew. */
  waysFile: z.string().optional(),
  /** The ways if there is no such file, in the order to try them. */
  ways: z.array(WAY).default([]),
});
export type Home = z.infer<typeof HOME>;

/** The current ways: those in the agent's file if it is readable, otherwise those in the configuration. */
export function waysNow(home: Home): readonly Way[] {
  if (home.waysFile === undefined) return home.ways;
  try {
    return z.array(WAY).parse(JSON.parse(readFileSync(home.waysFile, 'utf8')));
  } catch {
    return home.ways;
  }
}
