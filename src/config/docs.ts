import { CREDENTIAL_KEYS } from './credentials.ts';
import { SETTINGS } from './settings.ts';
import { BATCH_LIMITS, SITE_KEYS } from './sites.ts';
import type { Table } from './table.ts';

/** Documents every configuration key in Markdown, from the same tables that read the files, or the one; '' if it is in none. */
export function configDocs(key?: string): string {
  if (key !== undefined) return ofKey(key);
  const { fork, queue } = BATCH_LIMITS;
  return `# Configuration

Gryphus works without any configuration. \`config.toml\` is in \`$GRYPHUS_HOME\`, else in \`~/.config/gryphus\`; each site has its own
file in \`sites/\` there. Times are \`"30s"\`, \`"5m"\`, \`"1h30m"\`, \`"7d"\`; sizes are \`"500M"\`, \`"10G"\`. Error
messages name the file, the line and what to write instead.

## config.toml

${table(SETTINGS)}
## sites/NAME.toml

${table(SITE_KEYS)}
Default limits of a site:

| | plain processes (\`fork\`) | a batch system |
| --- | --- | --- |
| \`limits.queued\` | ${fork.queued} | ${queue.queued} |
| \`limits.running\` | its cores | no limit |
| \`limits.submits_per_minute\` | ${fork.submitsPerMinute} | ${queue.submitsPerMinute} |
| \`limits.poll_min\` | ${fork.pollMin} s | ${queue.pollMin} s |
| \`limits.poll_max\` | ${fork.pollMax} s | ${queue.pollMax} s |

## credentials/NAME.toml

What a site accepts and when it ends; a site names it as its \`credential\` ([credentials](credentials.md)).

${table(CREDENTIAL_KEYS).trimEnd()}
`;
}

function ofKey(key: string): string {
  return [
    ['config.toml', SETTINGS],
    ['sites/NAME.toml', SITE_KEYS],
    ['credentials/NAME.toml', CREDENTIAL_KEYS],
  ]
    .flatMap(([file, keys]) => {
      const { [key]: row } = keys as Table;
      return row === undefined ? [] : [`## ${file as string}\n\n${table({ [key]: row }).trimEnd()}\n`];
    })
    .join('\n');
}

function table(keys: Table): string {
  const rows = Object.entries(keys).map(([key, { kind, preset, doc }]) => {
    const value = preset === undefined ? '' : `\`${JSON.stringify(preset)}\``;
    return `| \`${key}\` | ${value} | ${doc.replaceAll('|', '\\|')} (${kind.says.replaceAll('|', '\\|')}) |`;
  });
  return `| key | default | |\n| --- | --- | --- |\n${rows.join('\n')}\n\n`;
}
