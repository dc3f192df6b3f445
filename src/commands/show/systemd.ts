/** A systemd user unit (systemd.service(5)) that keeps the Scheduler up; `home` where it is not the default. */
export function systemdUnit(node: string, program: string, home: string | undefined): string {
  const command = (word: string) => `ExecStart=${unitWord(node)} ${unitWord(program)} ${word}`;
  return `[Unit]
Description=Gryphus, a personal grid agent
After=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
# Local jobs outlive the agent.
KillMode=process
${home === undefined ? '' : `Environment=${unitWord(`GRYPHUS_HOME=${home}`).replaceAll('$$', '$')}\n`}${command('up')}
${command('down').replace('ExecStart', 'ExecStop')}

[Install]
WantedBy=default.target
`;
}

/** One word of a unit's line: quotes and backslashes escaped, `%` and `$` taken as they are. */
function unitWord(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`;
}
