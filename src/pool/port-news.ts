import * as z from 'zod';

/** What the process that has the agent's port tells the Scheduler. */
export const PORT_NEWS = z.union([z.strictObject({ port: z.number() }), z.strictObject({ error: z.string() })]);
export type PortNews = z.infer<typeof PORT_NEWS>;
