/** Where the agent's files are, and what it finds without a path: systemd's own environment is not that of the user's shell. */
const VARIABLES = ['GRYPHUS_HOME', 'XDG_CONFIG_HOME', 'XDG_STATE_HOME', 'GRYPHUS_REDIS_SERVER', 'PATH'] as const;

/** `gryphus down` by its words; before a shutdown, or the end of the last log-in without linger, also the worker ends. */
const DOWN = '[ "$(systemctl --user is-system-running)" != stopping ] || set -- "$@" --vacate; exec "$@"';

/**
 * A systemd user unit (systemd.service(5)) that starts the Scheduler at boot or log-in, and again if that failed: a home may be
 * mounted late. `env`: the environment in which it is to run, of which it gets `VARIABLES`.
 */
export function systemdUnit(node: string, program: string, env: Readonly<Record<string, string | undefined>>): string {
  const command = (word: string) => `${unitQuoted(node)} ${unitQuoted(program)} ${word}`;
  const variables = VARIABLES.flatMap((name) => {
    const value = env[name];
    return value ? [`Environment=${unitQuoted(`${name}=${value}`).replaceAll('$$', '$')}\n`] : [];
  });
  return `[Unit]
Description=Gryphus, a personal grid agent
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
Restart=on-failure
RestartSec=30
# Local jobs outlive the agent.
KillMode=process
${variables.join('')}ExecStart=${command('up')}
# At the end of all services, what is left is killed.
ExecStop=/bin/sh -c ${unitQuoted(DOWN)} sh ${command('down')}

[Install]
WantedBy=default.target
`;
}

/** Quotes a word for a unit: quotes and backslashes are escaped, `%` and `$` kept literal. */
function unitQuoted(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`;
}
