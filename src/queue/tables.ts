import * as z from 'zod';
import { MEMORIES } from '../credentials/watch/model.ts';
import { PENDING, SENT } from '../notify/rate.ts';
import { sending } from '../site/sending.ts';
import { DAEMON } from '../util/daemon.ts';
import { Table } from './table.ts';

/*
 * Everything that processes of the agent tell each other through the queue's small values: each table's key, and the
 * schema of its rows. `place` as a key is `<manager>/<site>`. Times are Unix milliseconds unless the schema says seconds.
 */

const CONNECTION = z.enum(['unused', 'up', 'down', 'needs-login', 'refused']);
export type ConnectionState = z.infer<typeof CONNECTION>;
const CONNECTION_VIEW = z.object({
  connection: CONNECTION,
  message: z.string(),
  since: z.number(),
  /** An unexpected error of ours that delays work at this site, whatever the state of the connection. */
  trouble: z.string().exactOptional(),
});
export type ConnectionView = Readonly<z.infer<typeof CONNECTION_VIEW>>;
/** A GridManager's view of its connection with a site, by place. */
export const SITE_STATUS = new Table('site-status', CONNECTION_VIEW);

const CAPACITY = z.object({
  at: z.number(),
  validUntil: z.number(),
  /** Number of our jobs, of all managers, that were running there at that time. */
  running: z.number(),
  host: z.string(),
  os: z.string(),
  arch: z.string(),
  freeDiskKb: z.number().optional(),
  batchVersion: z.string().optional(),
  cpus: z.number().exactOptional(),
  freeCpus: z.number().exactOptional(),
});
export type SiteCapacity = Readonly<z.infer<typeof CAPACITY>>;
/** What a site reported about itself, by place; the broker builds the site's ad from it. */
export const SITE_CAPACITY = new Table('site-capacity', CAPACITY);
/** Under CAPACITY_WANTED: until when capacity polls are wanted even if no job waits for a site. */
export const BROKER = new Table('broker', z.number());
export const CAPACITY_WANTED = 'capacity-polls-until';

const LEARNED = z.object({
  cap: z.number(),
  /** The site's own message. */
  message: z.string(),
  /** When it refused. */
  at: z.number(),
});
/** What a refusal taught about how many of our jobs a site accepts. */
export type Learned = Readonly<z.infer<typeof LEARNED>>;
const OUT_OF_USE = z.object({
  message: z.string(),
  /** When the next job may be sent as a probe. */
  probeAt: z.number(),
  /** A probe was sent, and its result is not known yet. */
  probing: z.boolean(),
});
/** Why a site that keeps failing jobs is given none. */
export type OutOfUse = Readonly<z.infer<typeof OUT_OF_USE>>;
const BACKOFF = z.object({
  learned: LEARNED.readonly().exactOptional(),
  outOfUse: OUT_OF_USE.readonly().exactOptional(),
});
/** How we back off from a site that is full or broken. */
export type BackoffView = Readonly<z.infer<typeof BACKOFF>>;
/** By place. */
export const SITE_BACKOFF = new Table('site-backoff', BACKOFF);

const MEASURES = z.object({
  /** Seconds from the site's acceptance to the start, and from start to end: means that favour recent samples. */
  wait: z.number().exactOptional(),
  run: z.number().exactOptional(),
  /** When jobs failed because of the site, in Unix seconds, newest last. */
  failures: z.array(z.number()).readonly(),
});
export type Measures = Readonly<z.infer<typeof MEASURES>>;
/** What the broker measured of a site, by the site's name. */
export const SITE_MEASURES = new Table('site-measures', MEASURES);

/** Until when a GridManager is kept alive, with or without jobs, by its identity. */
export const STAY = new Table('stay', z.number());
/** Until when somebody follows the job's output, by the job's id. */
export const FOLLOWED = new Table('followed', z.number());

const TRANSFERS = z.object({ at: z.number(), all: z.array(sending).readonly() });
/** Transfers to and from a site, by place; no row: nothing is being transferred. */
export const TRANSFERS_OF = {
  to: new Table('sending', TRANSFERS),
  from: new Table('coming', TRANSFERS),
} as const;

const COPY = z.object({ version: z.string(), file: z.string() });
/** Which version of a proxy a site has, by manager, site and credential, with tabs between them. */
export const CREDENTIAL_COPIES = new Table('credential-copies', COPY);
/** What the credential watch has told and tried so far; under WHOLE. */
export const CREDENTIAL_MEMORIES = new Table('credentials', MEMORIES);

const WAYS = z.object({
  because: z.array(z.string()).readonly(),
  came: z.object({ connection: z.number(), mailbox: z.number() }).exactOptional(),
  at: z.number(),
});
/** How workers of a site were seen to reach the agent, and when. */
export type SiteWaysView = Readonly<z.infer<typeof WAYS>>;
/** How workers of a site reach the agent, as found when it last had some; by the site's name. */
export const SITE_WAYS = new Table('site-ways', WAYS);
/** The SHA-256 of the Node that a site's pilots run, by the site's name. */
export const GLIDEIN_NODE = new Table('glidein-node', z.string());
/** Mean run time of a kind of job in the pool, in seconds, by the kind's name. */
export const GLIDEIN_TIMES = new Table('glidein-times', z.number());

const FAILURE = z.object({
  /** Unix seconds. */
  at: z.number(),
  job: z.string(),
  /** Which node, and why. */
  message: z.string(),
});
/** A pilot that could not run. */
export type Failure = Readonly<z.infer<typeof FAILURE>>;
/** A site's latest failures, oldest first, by the site's name. */
export const GLIDEIN_FAILURES = new Table('glidein-failures', z.array(FAILURE).readonly());

const RUNTIMES = z.object({
  /** Unix seconds. */
  at: z.number(),
  /** The attributes that at least one worker had. */
  has: z.array(z.string()).readonly(),
  /** Why they lacked others, in one worker's words. */
  message: z.string().optional(),
});
/** Which container runtimes the pilots of a site last reported. */
export type RuntimesSeen = Readonly<z.infer<typeof RUNTIMES>>;
/** By the site's name. */
export const GLIDEIN_RUNTIMES = new Table('glidein-runtimes', RUNTIMES);

/** Since when the pool is used without a job in the queue (by `gryphus map`, or a glidein); under WHOLE. */
export const POOL_WANTED = new Table('pool-wanted', z.number());
/** The Scheduler (SCHEDULER) and the GridManagers (MANAGER and their identity) that run. */
export const DAEMONS = new Table('daemon', DAEMON);
/** Clusters in which a single job was given a policy by an edit, by cluster. */
export const EDITED_POLICIES = new Table('periodic', z.literal(1));

const OWED = z.object({
  count: z.number(),
  logs: z.array(z.object({ path: z.string(), since: z.number(), error: z.string() }).readonly()).readonly(),
});
/** User logs that cannot be written now: how many, and the first of them. */
export type OwedLogs = Readonly<z.infer<typeof OWED>>;
/** Under WHOLE; no row: all logs are written. */
export const OWED_LOGS = new Table('user-log', OWED);

/** Mails that wait to be sent, by recipient and the message's key. */
export const WAITING_MAIL = new Table('mail-waiting', PENDING);
const MAIL_TROUBLE = z.object({ since: z.number(), at: z.number(), error: z.string(), lost: z.boolean() });
/**
 * Why mail cannot be sent, since when, and when that was seen last (Unix milliseconds); `lost`: the server refused one for good. Under WHOLE; no
 * row: the last one was sent.
 */
export const UNSENT_MAIL = new Table('mail-trouble', MAIL_TROUBLE);
export type UnsentMail = Readonly<z.infer<typeof MAIL_TROUBLE>>;
/** What was sent lately; under WHOLE. */
export const SENT_MAIL = new Table('mail', z.array(SENT).readonly());

const WAITING = z.object({
  dependency: z.string(),
  /** Whether jobs whose dependency can no longer be met are removed. */
  removes: z.boolean(),
  owner: z.string(),
  name: z.string(),
  /** Met, but some of the cluster's jobs have yet to be made. */
  met: z.boolean(),
});
export type Waiting = Readonly<z.infer<typeof WAITING>>;
/** Clusters whose jobs wait for others, by cluster. */
export const DEPENDENCIES = new Table('dependency', WAITING);

/** The key of tables with a single row. */
export const WHOLE = 'all';
