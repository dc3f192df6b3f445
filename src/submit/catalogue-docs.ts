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
    'Done',
    'Where a column is empty, the submit warns of the command for a job that goes there. The pool has the jobs of the vanilla universe, and of the container and docker universes.',
  ],
  ['warned', 'Warned of', 'They have no effect. The submit says so, with the line, once for each command.'],
  ['refused', 'Refused', 'A job with one of these would do something else than it says. A dry run warns of them.'],
  [
    'not-run',
    'Of universes that are not run here',
    'A dry run shows their ads; a submit refuses the universe. In another universe they mean nothing, and the submit says so.',
  ],
];

/** docs/submit-commands.md: every submit command and how it is handled. */
export function submitCommandsPage(): string {
  const sections = PAGES.map(([fate, title, text]) => {
    const commands = CATALOGUE.filter((command) => command.fate === fate);
    return `## ${title}\n\n${text}\n\n${fate === 'done' ? doneTable(commands) : fateTable(commands)}`;
  });
  return `# Submit commands

Made by \`node scripts/docs.mjs\` from \`src/submit/catalogue-table.ts\`. All ${CATALOGUE.length} commands that are known, those of HTCondor 25
and a few of ours, are in one of these lists. \`+Name\` and \`MY.Name\` of the attribute mean the same as the command, and are
warned of and refused like it. What differs from HTCondor in how they are read: [compatibility.md](compatibility.md).

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
