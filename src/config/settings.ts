import { existsSync } from 'node:fs';
import { duration, durations, expression, flag, integer, oneOf, path, size, someOf, text, texts } from './kinds.ts';
import { loadPaths, type Paths } from './paths.ts';
import { entry, presets, readTable, type Values } from './table.ts';
import { parseToml, readSource } from './toml.ts';

/** Every key of `config.toml`. Times are seconds, sizes bytes, once read. */
export const SETTINGS = {
  owner: entry(text, undefined, 'Whose jobs these are; without it, the log-in name.'),

  'redis.url': entry(text, undefined, 'A Redis server to use instead of the private one; `REDIS_URL` goes before it.'),
  'redis.server': entry(
    text,
    undefined,
    'The redis-server program of the private Redis; `GRYPHUS_REDIS_SERVER` goes before it.',
  ),

  'daemons.environment': entry(
    texts,
    [],
    'Variables that the daemons take over from the shell of the command that starts them, besides those that they need: names, with `*` at the end for many. For a ProxyCommand of ssh, say. Jobs do not see them.',
  ),

  'scheduler.periodic_interval': entry(
    duration,
    '60s',
    'How often `periodic_hold`, `periodic_release`, `periodic_remove` and `periodic_vacate` are looked at.',
  ),
  'scheduler.idle_exit': entry(
    duration,
    undefined,
    'The Scheduler and its Redis end when there has been no job for so long, until the next command; without it, they stay.',
  ),

  'gridmanager.retry_min': entry(duration, '2s', 'The first wait after a site did not answer; doubled each time.'),
  'gridmanager.retry_max': entry(duration, '10m', 'The longest wait between two tries to reach a site.'),
  'gridmanager.restart_max': entry(
    duration,
    '1m',
    'The longest wait before a GridManager that keeps dying is started again.',
  ),
  'gridmanager.hung_after': entry(
    duration,
    '90s',
    "A GridManager, the pool's desk or this machine's worker that gives no sign of life for so long is killed, and another is started; its jobs run on.",
  ),
  'gridmanager.commit_timeout': entry(
    duration,
    '1d',
    'A site sweeps an attempt that was prepared but not committed for so long.',
  ),

  'broker.max_wait': entry(
    duration,
    '1h',
    'A job whose site the broker chose, and that waits there for so long, is taken back where another site has room.',
  ),

  'broker.flood_sites': entry(
    integer(1),
    3,
    'At so many sites a job with `want_flood = true` is queued at once, at most; the first to start it runs it.',
  ),

  'pool.local_worker': entry(flag, true, 'The pool has a worker on this machine, so that it is never empty.'),
  'pool.cpus': entry(integer(1), undefined, 'Cores of this machine that the pool may use; without it, all.'),
  'pool.memory': entry(size, undefined, 'Memory of this machine that the pool may use; without it, all.'),
  'pool.start': entry(
    expression,
    undefined,
    'A ClassAd expression: which jobs the worker of this machine takes (START). Without it, all.',
  ),
  'pool.rank': entry(
    expression,
    undefined,
    'A ClassAd expression: which jobs the worker of this machine prefers (RANK).',
  ),
  'pool.retirement': entry(
    expression,
    undefined,
    'A ClassAd expression: seconds that a job may run on before it makes room for one that `pool.rank` prefers (MaxJobRetirementTime; a job may ask for less). Without it, 0.',
  ),
  'pool.limit_memory': entry(
    flag,
    false,
    "A pool job that holds more memory than it asked for is ended and held (code 34); where it has a control group, by the kernel (HTCondor's CGROUP_MEMORY_LIMIT_POLICY `hard`; else `none`).",
  ),
  'pool.cgroups': entry(
    oneOf(['auto', 'always', 'never']),
    'auto',
    "Whether workers run each job in a control group, as of a worker's start: where they may make such of the kernel's second generation, of the first generation, too (as root), or nowhere.",
  ),

  'submit.default_site': entry(
    text,
    'pool',
    'Where a vanilla job runs: `pool`, or the name of a site (`local`: as plain processes of this machine).',
  ),
  'submit.max_jobs': entry(
    integer(1),
    10_000_000,
    'Jobs that one submit may put into the queue; those that late materialization makes are not counted.',
  ),
  'submit.default_cpus': entry(integer(1), 1, '`request_cpus` of a job that asks for none.'),
  'submit.default_memory': entry(size, '128M', '`request_memory` of a job that asks for none.'),
  'submit.default_disk': entry(
    size,
    undefined,
    "`request_disk` of a job that asks for none; without it, what HTCondor reckons from the job's input files.",
  ),

  'glidein.idle': entry(duration, '10m', 'A pilot that had nothing to run for so long ends.'),
  'glidein.lease': entry(duration, '40m', 'A pilot that runs nothing and does not reach its agent for so long ends.'),
  'glidein.most': entry(integer(0), 1000, 'Pilots that the factory may have at once, at all sites.'),
  'glidein.disk': entry(size, '1G', 'Free disk that a node must have for a pilot.'),
  'glidein.node': entry(
    oneOf(['auto', 'npm', 'own']),
    'auto',
    "The Node that pilots take along: npm's package of the official one, our own, or npm's where it can be had.",
  ),
  'glidein.listen': entry(text, undefined, '`address:port` that workers may dial directly (TLS); without it, none.'),
  'glidein.address': entry(text, undefined, '`host:port` by which sites reach it; without it, as `glidein.listen`.'),

  'user_log.format': entry(
    someOf(['ISO_DATE', 'LEGACY', 'UTC', 'SUB_SECOND', 'JSON', 'XML']),
    ['ISO_DATE'],
    "HTCondor's DEFAULT_USERLOG_FORMAT_OPTIONS: how dates and events are written, unless the submit file says otherwise.",
  ),

  'history.keep_jobs': entry(integer(0), 100_000, 'How many ended jobs `gryphus history` keeps.'),
  'history.keep_for': entry(duration, '365d', 'How long it keeps them.'),

  'cache.site_keep_for': entry(duration, '7d', 'An input that no job uses is deleted at a site after so long.'),
  'cache.site_size': entry(size, '20G', "The most that a site's input cache may hold of what no job uses."),

  'urls.netrc': entry(
    path,
    undefined,
    'Log-ins for URLs in submit files, in the form of netrc, readable by you alone (0600); without it, `netrc` beside this file.',
  ),
  'urls.ca': entry(path, undefined, "A file with certificate authorities (PEM) to believe beside the system's."),

  'notify.email': entry(
    text,
    undefined,
    'Where mail goes, unless `notify_user` in a submit file says otherwise. No mail without it.',
  ),
  'notify.from': entry(text, undefined, 'The sender; without it, owner@host.'),
  'notify.problems': entry(
    flag,
    true,
    'Mail about what needs you: a credential that ends, a site that wants a log-in, held jobs.',
  ),
  'notify.method': entry(oneOf(['sendmail', 'smtp']), 'sendmail', 'How mail leaves this machine.'),
  'notify.sendmail': entry(text, '/usr/sbin/sendmail', 'The sendmail program.'),
  'notify.smtp.host': entry(text, undefined, 'The SMTP server.'),
  'notify.smtp.port': entry(integer(1, 65_535), 587, 'Its port.'),
  'notify.smtp.security': entry(
    oneOf(['starttls', 'tls', 'none']),
    'starttls',
    'TLS after STARTTLS (required), from the first byte, or none.',
  ),
  'notify.smtp.user': entry(text, undefined, 'The name to log in with.'),
  'notify.smtp.password_file': entry(
    text,
    undefined,
    'A file with the password in its first line, readable by you alone (0600).',
  ),
  'notify.smtp.password_command': entry(
    text,
    undefined,
    'A command line that prints the password on its first line, instead of a file.',
  ),
  'notify.smtp.ca': entry(text, undefined, "A file with certificate authorities (PEM) to believe beside the system's."),
  'notify.digest': entry(duration, '1m', 'Mails about many jobs within this time become one.'),

  'alarms.credential': entry(
    durations,
    ['24h', '6h', '1h'],
    'How long before the end of a credential you are told, each once; what is more than half of its life is left out.',
  ),
  'alarms.hold_before_end': entry(
    duration,
    '60s',
    'Jobs are held when their credential ends within this time (never more than a tenth of its life).',
  ),
  'alarms.hook': entry(
    text,
    undefined,
    'A command line for every alarm: the text on its standard input, GRYPHUS_SUBJECT and GRYPHUS_KIND in its environment.',
  ),
  'alarms.desktop': entry(flag, false, 'A note on the desktop (notify-send) for every alarm.'),

  'log.level': entry(oneOf(['debug', 'info', 'warn', 'error']), 'info', "How much the daemons' own logs say."),
  'log.max_size': entry(size, '20M', "A daemon's log is turned over at this size; one old one is kept."),
} as const;

export type Settings = Values<typeof SETTINGS>;

/**
 * The settings in force: `config.toml` over the defaults. A GryphusError 'bad-config' names the file, the line and the
 * mend of what is wrong; a missing file is an empty one.
 */
export async function loadSettings(paths: Paths = loadPaths()): Promise<Settings> {
  if (!existsSync(paths.configFile)) return presets(SETTINGS);
  const source = readSource(paths.configFile);
  return readTable(SETTINGS, await parseToml(source), source);
}
