import { existsSync } from 'node:fs';
import {
  directories,
  duration,
  durations,
  flag,
  integer,
  memorySize,
  oneOf,
  path,
  size,
  someOf,
  text,
  texts,
} from './kinds.ts';
import { CHECKPOINT_ENGINES } from '../job/checkpoint-engines.ts';
import { loadPaths, type Paths } from './paths.ts';
import { machineResources } from './machine-kinds.ts';
import { POLICY_KEYS, prefixed } from './policy-keys.ts';
import { SHARING_KEYS } from './sharing-keys.ts';
import { entry, presets, readTable, refusal, type Source, type Values } from './table.ts';
import { parseToml, readSource } from './toml.ts';

/** Every key of `config.toml`. Once read, times are in seconds and sizes in bytes. */
export const SETTINGS = {
  owner: entry(text, undefined, 'Owner of the jobs; default: your log-in name.'),

  'redis.url': entry(text, undefined, 'A Redis server to use instead of the private one; `REDIS_URL` overrides it.'),
  'redis.server': entry(
    text,
    undefined,
    'The redis-server program for the private Redis; `GRYPHUS_REDIS_SERVER` overrides it.',
  ),

  'daemons.environment': entry(
    texts,
    [],
    'Additional environment variables that the daemons inherit from the shell that starts them, for example for an ssh ProxyCommand; a name may end with `*`. Jobs do not see them.',
  ),

  'scheduler.periodic_interval': entry(
    duration,
    '60s',
    'How often `periodic_hold`, `periodic_release`, `periodic_remove` and `periodic_vacate` are evaluated.',
  ),
  'scheduler.idle_exit': entry(
    duration,
    undefined,
    'The Scheduler and its Redis stop after this time without jobs, until the next command; default: never.',
  ),

  'gridmanager.retry_min': entry(duration, '2s', 'The first wait after a site did not answer; doubled each time.'),
  'gridmanager.retry_max': entry(duration, '10m', 'The longest wait between two attempts to reach a site.'),
  'gridmanager.restart_max': entry(
    duration,
    '1m',
    'The longest wait before a GridManager that keeps crashing is restarted.',
  ),
  'gridmanager.hung_after': entry(
    duration,
    '90s',
    'A GridManager, central manager or local worker without a heartbeat for this time is killed and restarted; its jobs keep running.',
  ),
  'gridmanager.commit_timeout': entry(duration, '1d', 'How long a site keeps a prepared job that is never committed.'),

  'broker.max_wait': entry(
    duration,
    '1h',
    'A job that the broker placed is moved after waiting this long, if another site has free capacity.',
  ),

  'broker.flood_sites': entry(
    integer(1),
    3,
    'The largest number of sites at which a job with `want_flood = true` is queued at once; the first to start it runs it.',
  ),

  'pool.local_worker': entry(flag, true, 'Whether this machine is a worker of the pool.'),
  'pool.cpus': entry(integer(1), undefined, 'Cores of this machine that the pool may use; default: all.'),
  'pool.memory': entry(memorySize, undefined, 'Memory of this machine that the pool may use; default: all.'),
  'pool.gpus': entry(
    integer(0),
    undefined,
    'GPUs of this machine that the pool may use, numbered from 0; default: all of NVIDIA that there are.',
  ),
  ...prefixed('pool', POLICY_KEYS),
  ...prefixed('pool', SHARING_KEYS),
  'pool.resources': entry(
    machineResources,
    undefined,
    'A table of custom resources of this machine, such as `licenses = 2` (MACHINE_RESOURCE_licenses); a job takes what it requests with `request_licenses`.',
  ),
  'pool.limit_memory': entry(
    flag,
    false,
    "Whether a pool job that uses more memory than it requested is killed and held (code 34); in a control group the kernel enforces this (HTCondor's CGROUP_MEMORY_LIMIT_POLICY: `hard`, otherwise `none`).",
  ),
  'pool.run_as': entry(
    text,
    'owner',
    'Under whose account a worker that runs as root runs jobs: `owner` (who submitted the job, where that account exists; root only for jobs that root submitted to its own agent; else as `slot`, else `nobody`), `slot` (the accounts `slot1_1`, `slot1_2`, …, each for one job at a time), `nobody`, another account, or `root`. See [owner.md](owner.md#a-worker-that-runs-as-root).',
  ),
  'pool.execute': entry(
    text,
    undefined,
    "The directory of these jobs' sandboxes, which their accounts must be able to reach (EXECUTE). Takes effect when a worker starts; default: in the worker's own directory, if others can reach that, else `/var/lib/gryphus/execute`.",
  ),
  'pool.remote_io': entry(
    directories,
    [],
    'Directories beside the submit directory that jobs with `want_remote_io` may read, such as `["~/data", "/scratch/me:rw"]`; `:rw` lets them write there, too. See [remote-io.md](remote-io.md).',
  ),
  'pool.checkpoint_engines': entry(
    someOf(CHECKPOINT_ENGINES),
    ['gryphus'],
    'What may write and restore the images of jobs with `want_checkpoint`, as a job chooses with `checkpoint_engine`. Takes effect when a worker starts. See [checkpoints.md](checkpoints.md#other-engines).',
  ),
  'pool.cgroups': entry(
    oneOf(['auto', 'always', 'never']),
    'auto',
    'Whether workers run each job in a control group. `auto`: cgroup v2, where delegated; `always`: also cgroup v1 (needs root); `never`. Takes effect when a worker starts.',
  ),

  'submit.default_site': entry(
    text,
    'pool',
    'Where vanilla jobs run: `pool`, or the name of a site (`local`: plain processes on this machine).',
  ),
  'submit.max_jobs': entry(
    integer(1),
    10_000_000,
    'The largest number of jobs that one submit may put into the queue; jobs of late materialization are not counted.',
  ),
  'submit.default_cpus': entry(integer(1), 1, '`request_cpus` of a job that does not set it.'),
  'submit.default_memory': entry(memorySize, '128M', '`request_memory` of a job that does not set it.'),
  'submit.default_disk': entry(
    size,
    undefined,
    '`request_disk` of a job that does not set it; default: computed from the input files, as HTCondor does.',
  ),

  'glidein.idle': entry(duration, '10m', 'A pilot ends after this time without work.'),
  'glidein.lease': entry(duration, '40m', 'A pilot without work ends after this time without contact to its agent.'),
  'glidein.most': entry(
    integer(0),
    1000,
    'The largest number of pilots that the factory may have at once, at all sites together.',
  ),
  'glidein.disk': entry(size, '1G', 'Free disk space that a node must have for a pilot.'),
  'glidein.node': entry(
    oneOf(['auto', 'npm', 'own']),
    'auto',
    "The Node.js that pilots carry: `npm` (the official build, from npm), `own` (this machine's), `auto` (npm's if reachable).",
  ),
  'glidein.listen': entry(
    text,
    undefined,
    '`address:port` on which workers may connect directly (TLS); default: none.',
  ),
  'glidein.address': entry(
    text,
    undefined,
    '`host:port` at which sites reach that port; default: as `glidein.listen`.',
  ),

  'flock.listen': entry(
    text,
    undefined,
    '`address:port` at which the pools of partners connect ([flock.md](flock.md)); default: none.',
  ),

  'user_log.format': entry(
    someOf(['ISO_DATE', 'LEGACY', 'UTC', 'SUB_SECOND', 'JSON', 'XML']),
    ['ISO_DATE'],
    "HTCondor's DEFAULT_USERLOG_FORMAT_OPTIONS: how dates and events are written, unless the submit file says otherwise.",
  ),

  'history.keep_jobs': entry(
    integer(0),
    100_000,
    'The largest number of ended jobs that `gryphus history` keeps, besides those of the last day and of clusters that are still in the queue.',
  ),
  'history.keep_for': entry(duration, '365d', 'How long `gryphus history` keeps ended jobs.'),

  'cache.site_keep_for': entry(duration, '7d', 'How long a site caches an input that no job uses.'),
  'cache.site_size': entry(size, '20G', "The largest size of the inputs in a site's cache that no job uses."),

  'urls.netrc': entry(
    path,
    undefined,
    'Log-ins for URLs in submit files, in netrc format, mode 0600; default: `netrc` beside this file.',
  ),
  'urls.stream_interval': entry(
    duration,
    '10s',
    'How often the growing output of a running job with `stream_output` is stored at its URL.',
  ),
  'urls.ca': entry(path, undefined, 'A file (PEM) of additional certificate authorities to trust.'),

  'notify.email': entry(
    text,
    undefined,
    'Address for mail, unless `notify_user` in a submit file says otherwise; default: no mail.',
  ),
  'notify.from': entry(text, undefined, 'The sender; default: owner@host.'),
  'notify.problems': entry(
    flag,
    true,
    'Whether to send mail about problems that need you: a credential that expires, a site that requires a log-in, held jobs.',
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
  'notify.smtp.password_file': entry(text, undefined, 'A file (mode 0600) with the password on its first line.'),
  'notify.smtp.password_command': entry(
    text,
    undefined,
    'A command line that prints the password on its first line, instead of a file.',
  ),
  'notify.smtp.ca': entry(text, undefined, 'A file (PEM) of additional certificate authorities to trust.'),
  'notify.digest': entry(duration, '1m', 'Mails about several jobs within this time are sent as one.'),

  'alarms.credential': entry(
    durations,
    ['24h', '6h', '1h'],
    'How long before a credential expires to send an alarm, each once; times longer than half of its lifetime are skipped.',
  ),
  'alarms.hold_before_end': entry(
    duration,
    '60s',
    'Jobs are held when their credential expires within this time (never more than a tenth of its lifetime).',
  ),
  'alarms.hook': entry(
    text,
    undefined,
    'A command to run for every alarm, with the text on standard input and GRYPHUS_SUBJECT and GRYPHUS_KIND in the environment.',
  ),
  'alarms.desktop': entry(flag, false, 'Whether to show a desktop notification (notify-send) for every alarm.'),

  'log.level': entry(oneOf(['debug', 'info', 'warn', 'error']), 'info', "Level of the daemons' logs."),
  'log.max_size': entry(size, '20M', "A daemon's log is rotated at this size; one old log is kept."),
} as const;

export type Settings = Values<typeof SETTINGS>;

/**
 * The settings in force: `config.toml` over the defaults. A GryphusError 'bad-config' names the file, the line and the
 * remedy for what is wrong; a missing file counts as empty.
 */
export async function loadSettings(paths: Paths = loadPaths()): Promise<Settings> {
  if (!existsSync(paths.configFile)) return presets(SETTINGS);
  const source = readSource(paths.configFile, paths);
  const settings = readTable(SETTINGS, await parseToml(source), source);
  refuseUnnamedGroups(settings, source);
  return settings;
}

/** A quota of a group that no job may name would limit nothing. */
function refuseUnnamedGroups(settings: Settings, source: Source): void {
  const named = new Set(settings['pool.group_names'].map((name) => name.toLowerCase()));
  for (const key of ['pool.group_quota', 'pool.group_quota_dynamic'] as const)
    for (const group of Object.keys(settings[key] ?? {}))
      if (!named.has(group.toLowerCase()))
        throw refusal(source, `${key}.${group}`, `'${key}' names ${group}, which is not in pool.group_names`, [
          'Add it there, so that jobs can name it, or delete the quota.',
        ]);
}
