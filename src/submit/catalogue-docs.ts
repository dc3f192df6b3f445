import { CATALOGUE, type Fate, JOB_PLACES, type JobPlace, type SubmitCommand } from './catalogue.ts';

const HEAD: Readonly<Record<JobPlace, string>> = {
  pool: 'pool',
  batch: 'batch system',
  gram: 'GRAM',
  local: 'local, scheduler',
};

const PAGES: readonly (readonly [fate: Fate, title: string, text: string])[] = [
  [
    'done',
    'Supported',
    'If a column is empty, the command has no effect on jobs that go there, and submit prints a warning. The pool runs jobs of the vanilla, java, container and docker universes.',
  ],
  [
    'warned',
    'Ignored with a warning',
    'These have no effect. Submit prints a warning with the line, once for each command.',
  ],
  [
    'refused',
    'Refused',
    'A job with one of these would not do what the command requests, so submit refuses it; a dry run prints a warning.',
  ],
  [
    'not-run',
    'For unsupported universes',
    'A dry run shows their ads; a submit refuses the universe. In another universe these commands have no effect, and submit prints a warning.',
  ],
];

/** docs/submit-commands.md: every submit command and how it is handled. */
export function submitCommandsPage(): string {
  const sections = PAGES.map(([fate, title, text]) => {
    const commands = CATALOGUE.filter((command) => command.fate === fate);
    return `## ${title}\n\n${text}\n\n${fate === 'done' ? doneTable(commands) : fateTable(commands)}`;
  });
  return `# Submit commands

This page lists how each submit command is treated. All ${CATALOGUE.length} known commands, those of HTCondor 25 and a few that only Gryphus has, are in
one of these lists. \`+Name\` and \`MY.Name\` of an attribute are treated like its command. For differences from HTCondor
in how commands are read, see [compatibility.md](compatibility.md).

\`node scripts/docs.mjs\` generates this page from \`src/submit/catalogue-table.ts\`.

${sections.join('\n\n')}
`;
}

function names({ name, alias }: SubmitCommand): string {
  return [name, ...(alias === undefined ? [] : [alias])].map((one) => `\`${one}\``).join(', ');
}

function byName(commands: readonly SubmitCommand[]): SubmitCommand[] {
  return commands.toSorted((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
}

function doneTable(commands: readonly SubmitCommand[]): string {
  const rows = byName(commands).map((command) => {
    const { attribute, at, says } = command;
    const marks = JOB_PLACES.map((place) => (at?.includes(place) === false ? '' : '✓')).join(' | ');
    return `| ${names(command)} | ${attribute ?? ''} | ${marks} | ${says ?? ''} |`;
  });
  const head = `| command | attribute | ${JOB_PLACES.map((place) => HEAD[place]).join(' | ')} | |`;
  return [head, '| --- | --- | :-: | :-: | :-: | :-: | --- |', ...rows].join('\n');
}

function fateTable(commands: readonly SubmitCommand[]): string {
  const rows = byName(commands).map((command) => {
    return `| ${names(command)} | ${command.attribute ?? ''} | ${command.says ?? ''} |`;
  });
  return ['| command | attribute | |', '| --- | --- | --- |', ...rows].join('\n');
}
