/** A systemd user unit (systemd.service(5)) that keeps the Scheduler running; `home` if it is not the default. */
export function systemdUnit(node: string, program: string, home: string | undefined): string {
  const command = (word: string) => `ExecStart=${unitQuoted(node)} ${unitQuoted(program)} ${word}`;
  return `[Unit]
Description=Gryphus, a personal grid agent
After=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
# Local jobs outlive the agent.
KillMode=process
${home === undefined ? '' : `Environment=${unitQuoted(`GRYPHUS_HOME=${home}`).replaceAll('$$', '$')}\n`}${command('up')}
${command('down').replace('ExecStart', 'ExecStop')}

[Install]
WantedBy=default.target
`;
}

/** Quotes a word for a unit: quotes and backslashes are escaped, `%` and `$` kept literal. */
function unitQuoted(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`;
}
