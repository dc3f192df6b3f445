import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { allCommands } from '../../src/commands/registry.ts';
import { configDocs } from '../../src/config/docs.ts';
import { submitCommandsPage } from '../../src/submit/catalogue-docs.ts';
import { commandPage, overviewPage, pageName } from '../../src/commands/show/docs.ts';

const COMMANDS = await allCommands();

const DOCS = new URL('../../docs/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, DOCS), 'utf8');

it('the pages of the commands are those that `node scripts/docs.mjs` writes', () => {
  const pages = Object.entries(COMMANDS).map(([id, command]) => [pageName(id), commandPage(id, command)] as const);
  expect(readdirSync(new URL('cli/', DOCS)).sort()).toEqual(['README.md', ...pages.map(([name]) => name)].sort());
  expect(read('cli/README.md')).toBe(overviewPage(COMMANDS));
  for (const [name, text] of pages) expect(read(`cli/${name}`)).toBe(text);
});

it('so is that of the configuration', () => {
  expect(read('configuration.md')).toBe(configDocs());
});

it('and that of the submit commands', () => {
  expect(read('submit-commands.md')).toBe(submitCommandsPage());
});

it('every command says what it does, and every option too', () => {
  const silent = Object.entries(COMMANDS).flatMap(([id, command]) => {
    const flags = Object.entries(
      (command as { flags?: Record<string, { summary?: string; hidden?: boolean }> }).flags ?? {},
    );
    return [
      ...(command.summary.endsWith('.') ? [] : [id]),
      ...flags.filter(([, flag]) => !flag.hidden && !flag.summary?.endsWith('.')).map(([flag]) => `${id} --${flag}`),
    ];
  });
  expect(silent).toEqual([]);
});
