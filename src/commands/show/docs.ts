import { ERRORS } from '../../errors.ts';

/** What a page needs to know about a command; an oclif command class has it all. */
export interface Documented {
  readonly usage?: unknown;
  readonly summary?: string | undefined;
  readonly description?: string | undefined;
  readonly examples?: readonly unknown[] | undefined;
  readonly args?: Readonly<Record<string, { readonly description?: string; readonly required?: boolean }>>;
  readonly flags?: Readonly<
    Record<
      string,
      {
        readonly type: 'boolean' | 'option';
        readonly char?: string;
        readonly summary?: string;
        readonly hidden?: boolean;
        readonly helpValue?: string | string[];
        readonly options?: readonly string[];
        readonly default?: unknown;
        readonly aliases?: readonly string[];
      }
    >
  >;
}

/** A command's page, in the order of a manual page. */
export function commandPage(id: string, command: Documented): string {
  const name = `gryphus ${id.replace(':', ' ')}`;
  const args = Object.entries(command.args ?? {});
  const flags = Object.entries(command.flags ?? {}).filter(([, flag]) => !flag.hidden);
  const synopsis = [
    name,
    ...(flags.length > 0 ? ['[OPTION…]'] : []),
    ...args.map(([arg, { required }]) => (required ? arg.toUpperCase() : `[${arg.toUpperCase()}…]`)),
  ];
  const sections = [
    `# ${name}\n\n${command.summary ?? ''}`,
    `## Synopsis\n\n    ${typeof command.usage === 'string' ? `gryphus ${command.usage}` : synopsis.join(' ')}`,
    ...(command.description === undefined ? [] : [`## Description\n\n${command.description.trim()}`]),
    ...(args.length === 0
      ? []
      : [
          `## Arguments\n\n${args.map(([arg, { description }]) => `- \`${arg.toUpperCase()}\`: ${description ?? ''}`).join('\n')}`,
        ]),
    ...(flags.length === 0 ? [] : [`## Options\n\n${flags.map(([flag, about]) => option(flag, about)).join('\n')}`]),
    ...(command.examples?.length
      ? [
          `## Examples\n\n${command.examples.map((one) => `    ${String(one).replaceAll('<%= config.bin %>', 'gryphus')}`).join('\n')}`,
        ]
      : []),
    'Exit statuses, ways to name jobs, and options that every command has: [the command line](README.md).',
  ];
  return `${sections.join('\n\n')}\n`;
}

type Flag = NonNullable<Documented['flags']>[string];

function option(name: string, flag: Flag): string {
  const value = flag.options?.join('|') ?? (typeof flag.helpValue === 'string' ? flag.helpValue : '<value>');
  const long = flag.type === 'option' ? `--${name} ${value}` : `--${name}`;
  const message = [...(flag.char ? [`-${flag.char}`] : []), long].map((word) => `\`${word}\``).join(', ');
  const preset = typeof flag.default === 'string' ? ` Default: \`${flag.default}\`.` : '';
  return `- ${message}: ${flag.summary ?? ''}${preset}`;
}

/** The first page: what applies to all commands. */
export function overviewPage(commands: Readonly<Record<string, Documented>>): string {
  const rows = Object.entries(commands).map(
    ([id, { summary }]) => `| [\`${id.replace(':', ' ')}\`](${pageName(id)}) | ${summary ?? ''} |`,
  );
  const statuses = new Map<number, string[]>();
  for (const [code, { exit }] of Object.entries(ERRORS)) statuses.set(exit, [...(statuses.get(exit) ?? []), code]);
  const exits = [...statuses]
    .sort(([a], [b]) => a - b)
    .map(([exit, errors]) => `| ${exit} | ${errors.map((code) => `\`${code}\``).join(', ')} |`);
  return `# The command line

| command | |
| --- | --- |
${rows.join('\n')}

## Jobs

\`12\` is a cluster, \`12.3\` a job of it, anything else a user; several may be given. \`--constraint\` takes a ClassAd
expression and narrows the selection, in every command: \`rm 12 --constraint 'ProcId > 5'\` removes jobs of cluster 12 only. Options that HTCondor's
commands also have are named as there, and may be written as there: \`-nobatch\`, \`-const 'JobStatus == 5'\`, \`-af:jh Owner Cmd\`, \`-dry-run -\`.

## Options of every command

- \`--home <directory>\`: where configuration and state are. Default: \`$GRYPHUS_HOME\`, else the XDG directories
  (\`~/.config/gryphus\`, \`~/.local/state/gryphus\`).
- \`--help\`: the command's help. The manual pages have it too: \`man gryphus-submit\`. \`gryphus --version\`: the version.

Tables are truncated to the width of the terminal (or \`$COLUMNS\`, if set), but not in a pipe or a file. \`--json\` is for
programs: one JSON document, an array where there may be many. \`--jsonl\`, for output that arrives piece by piece, is one object per
line. New versions only add fields; [the names](../json.md).

## Errors and exit statuses

An error is one line on standard error, \`gryphus: …\`, and what to do about it. 0: success. 1: something that you asked for could
not be done, as the command reported (a job that was not held and could not be released, a wait whose time ran out, a step of
\`site test\` that failed). 3: \`status\` found no Scheduler. 130: Ctrl-C. Else:

| status | error |
| --- | --- |
${exits.join('\n')}

\`GRYPHUS_DEBUG=1\` adds the place in the source where an error came from.
`;
}

/** The file name of a command's page, next to the overview. */
export function pageName(id: string): string {
  return `${id.replace(':', '-')}.md`;
}
