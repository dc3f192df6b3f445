/** Names of variables; a `*` at the end matches any continuation. */
export type VariableNames = readonly string[];

/** What the user's programs inherit from the environment in which we were started. */
export const FOR_PROGRAMS: VariableNames = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LC_*',
  'TZ',
  'TMPDIR',
  'LD_LIBRARY_PATH',
];

/** What a batch system's commands need to find it on this machine. */
const BATCH_SYSTEMS: VariableNames = [
  'SLURM_CONF',
  'SGE_ROOT',
  'SGE_CELL',
  'SGE_CLUSTER_NAME',
  'SGE_QMASTER_PORT',
  'SGE_EXECD_PORT',
  'PBS_CONF_FILE',
  'PBS_SERVER',
  'PBS_DEFAULT',
  'LSF_ENVDIR',
  'LSF_SERVERDIR',
  'LSF_BINDIR',
  'LSF_LIBDIR',
  'CONDOR_CONFIG',
];

/** What commands on this machine inherit, and so the jobs that they start. */
export const FOR_SITE: VariableNames = [...FOR_PROGRAMS, ...BATCH_SYSTEMS];

/** Settings of container runtimes, and of the proxies for downloads. */
const CONTAINERS: VariableNames = ['CONTAINERS_*', 'DOCKER_*', 'APPTAINER_*', 'SINGULARITY_*', 'REGISTRY_AUTH_FILE'];
const PROXIES: VariableNames = [
  'http_proxy',
  'https_proxy',
  'all_proxy',
  'no_proxy',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'NO_PROXY',
];

/** What daemons need: their own settings, ssh's agent and prompts, certificates, containers, desktop notifications. */
const FOR_DAEMONS: VariableNames = [
  ...FOR_SITE,
  ...CONTAINERS,
  ...PROXIES,
  'GRYPHUS_*',
  'REDIS_URL',
  'XDG_*',
  'SSH_AUTH_SOCK',
  'SSH_ASKPASS*',
  'KRB5CCNAME',
  'X509_*',
  'MYPROXY_*',
  'GLOBUS_*',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'NODE_EXTRA_CA_CERTS',
  'NODE_OPTIONS',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'XAUTHORITY',
  'DBUS_SESSION_BUS_ADDRESS',
];

/** The variables in `env` with these names. */
export function only(env: NodeJS.ProcessEnv, names: VariableNames): NodeJS.ProcessEnv {
  const exact = new Set(names.filter((name) => !name.endsWith('*')));
  const prefixes = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => exact.has(name) || prefixes.some((prefix) => name.startsWith(prefix))),
  );
}

/**
 * The environment of a daemon. A daemon outlives the shell of the command that started it, and must not keep other
 * variables of that shell: a secret among them would be visible in /proc for as long as the daemon runs. `more`:
 * further variables that the user configured (`daemons.environment`).
 */
export function daemonEnvironment(env: NodeJS.ProcessEnv, more: VariableNames = []): NodeJS.ProcessEnv {
  return only(env, [...FOR_DAEMONS, ...more]);
}
