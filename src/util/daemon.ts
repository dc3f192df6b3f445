import * as z from 'zod';
import { PROCESS_IDENTITY } from './process-identity.ts';

/** Which build of Gryphus a process runs. */
const BUILD = z.object({
  version: z.string(),
  /** Where it is installed: the directory above `dist`. */
  path: z.string(),
  /** When it was built (ISO 8601); '' if it runs from source. */
  built: z.string(),
});
/** Which build a program is: its version, and when it was built. */
export type Build = z.infer<typeof BUILD>;

/** A daemon's own record. `since`: Unix milliseconds; `build`: the Scheduler's, as the others are its children. */
export const DAEMON = PROCESS_IDENTITY.extend({
  since: z.number(),
  build: z.exactOptional(BUILD),
});
export type Daemon = z.infer<typeof DAEMON>;

/** The Scheduler's name; a GridManager's is MANAGER and its identity. */
export const SCHEDULER = 'scheduler';
export const MANAGER = 'gm:';
/** The live page's server; only the record on disk names it. */
export const WEB = 'web';
/** The command server (src/command-server/); only the record on disk names it. */
export const COMMAND_SERVER = 'commands';
