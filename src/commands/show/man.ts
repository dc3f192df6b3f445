import { type Documented, commandPage, overviewPage } from './docs.ts';
import { manMarkup } from './man-markup.ts';

/** A manual page's file name, for example `gryphus-submit.1`, and its text. */
export interface ManPage {
  readonly file: string;
  readonly text: string;
}

/** A page of docs/ that is a manual page of section 5 too. */
export interface FormatPage {
  readonly name: string;
  /** What follows the name in the page's first section, without a full stop. */
  readonly summary: string;
  readonly markdown: string;
}

/** What stands in every page's title line. `date`: the day of the build, as `2026-01-31`. */
export interface Edition {
  readonly version: string;
  readonly date: string;
}

/**
 * The manual pages: gryphus(1), one for each command, and those of the formats. They are made from the same Markdown as
 * the pages of docs/.
 */
export function manPages(
  commands: Readonly<Record<string, Documented>>,
  formats: readonly FormatPage[],
  edition: Edition,
): ManPage[] {
  const five = formats.map(({ name }) => `**${name}**(5)`);
  const overview = overviewPage(commands)
    .replace('| command | |', '| command | text |')
    .replace(/\n+/, '\n\n## Commands\n\n');
  const main = page('gryphus', 1, 'a personal grid agent: a batch system of your own over all your machines', edition, [
    SYNOPSIS,
    overview.replace(/^# .*\n+/, ''),
    FILES,
    seeAlso([...Object.keys(commands).map(reference), ...five]),
  ]);
  const ones = Object.entries(commands).map(([id, command]) => {
    const name = manName(id);
    const markdown = commandPage(id, command)
      .replace(/^# .*\n+.*\n/, '')
      .replace(/\nExit statuses, [^\n]*\n$/, '\n');
    return page(name, 1, (command.summary ?? '').replaceAll('`', '').replace(/\.$/, ''), edition, [
      markdown,
      EXIT,
      FILES,
      seeAlso(['**gryphus**(1)', ...related(id, markdown, commands).map(reference), ...five]),
    ]);
  });
  const fives = formats.map(({ name, summary, markdown }) => {
    const others = five.filter((other) => other !== `**${name}**(5)`);
    return page(name, 5, summary, edition, [formatText(markdown), seeAlso(['**gryphus**(1)', ...others])]);
  });
  return [main, ...ones, ...fives];
}

const SYNOPSIS = `## Synopsis

    gryphus COMMAND [OPTION…] [ARGUMENT…]

## Description

Gryphus makes every machine that you may use behave like one local batch system. Jobs are submitted once, on your own
machine; each runs exactly once, on any site, and its results come home. Each command has a page of its own:
**gryphus-submit**(1) for \`gryphus submit\`. The first command starts the daemons that it needs.`;

const EXIT = `## Exit status

- \`0\`: success
- \`1\`: something that was asked for could not be done, as the command reported
- \`2\`: a wrong command line

Other statuses tell the kind of the error; **gryphus**(1) lists them.`;

const FILES = `## Files

- \`~/.config/gryphus/config.toml\`: the configuration
- \`~/.config/gryphus/sites/NAME.toml\`: one file for each site
- \`~/.local/state/gryphus\`: queue, history, logs
- \`$GRYPHUS_HOME\`: if set, configuration and state are in this directory instead`;

function page(name: string, section: 1 | 5, summary: string, edition: Edition, parts: readonly string[]): ManPage {
  const { version, date } = edition;
  const top = `.TH ${name.toUpperCase()} ${section} ${date} "gryphus ${version}" "Gryphus manual"\n.SH NAME\n${name} \\- ${first(summary)}\n`;
  return { file: `${name}.${section}`, text: `${top}${manMarkup(parts.join('\n\n'), 'Description')}` };
}

/** Without its title, and without the line that says how it is generated. */
function formatText(markdown: string): string {
  return markdown.replace(/^# .*\n+/, '').replace(/^`node scripts[^\n]*\n\n/m, '');
}

/** In a list of names, as whatis(1) prints it, a summary begins in lower case, unless its first word is a name. */
function first(summary: string): string {
  return /^[A-Z][a-z]/.test(summary) ? summary[0]?.toLowerCase() + summary.slice(1) : summary;
}

function seeAlso(references: readonly string[]): string {
  return `## See also\n\n${references.join(', ')}`;
}

/** The commands that a page names, and those of its group. */
function related(id: string, markdown: string, commands: Readonly<Record<string, unknown>>): string[] {
  const group = id.includes(':') ? id.slice(0, id.indexOf(':') + 1) : undefined;
  const named = [...markdown.matchAll(/`(?:gryphus )?([a-z]+)(?: ([a-z]+))?/g)].flatMap(([, one = '', two = '']) => [
    one,
    `${one}:${two}`,
  ]);
  return Object.keys(commands).filter(
    (other) => other !== id && ((group !== undefined && other.startsWith(group)) || named.includes(other)),
  );
}

function manName(id: string): string {
  return `gryphus-${id.replace(':', '-')}`;
}

function reference(id: string): string {
  return `**${manName(id)}**(1)`;
}
