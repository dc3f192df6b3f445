import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Parser } from '@oclif/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { condorHabits } from '../../src/commands/argv.ts';
import { inputWords } from '../../src/commands/map-inputs.ts';
import { allCommands } from '../../src/commands/registry.ts';

const COMMANDS = await allCommands();

const root = join(import.meta.dirname, '../..');
let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'gry-'));
  mkdirSync(join(dir, 'bin'));
  // Whatever program an example names, this one only prints its arguments.
  const says = `#!/bin/sh\n[ "\${0##*/}" = gryphus ] && { printf '%s\\0' "$@"; printf '\\n\\0'; } >>'${dir}/said'\nexit 0\n`;
  for (const name of ['gryphus', 'seq', 'systemctl', 'cat', 'mkdir', 'sed', 'find']) {
    writeFileSync(join(dir, 'bin', name), says);
    chmodSync(join(dir, 'bin', name), 0o755);
  }
  for (const place of ['.config/systemd/user', '.config/fish/completions', '.zfunc'])
    mkdirSync(join(dir, place), { recursive: true });
});
afterAll(() => rmSync(dir, { recursive: true }));

/** The arguments of each `gryphus` in a line of shell, as the shell passes them. */
function words(line: string): string[][] {
  writeFileSync(join(dir, 'said'), '');
  execFileSync('/bin/bash', ['-c', `cd '${dir}'; ${line}\nwait`], {
    env: { PATH: join(dir, 'bin'), HOME: dir },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said = readFileSync(join(dir, 'said'), 'utf8').split('\n\0').slice(0, -1);
  return said.map((one) => one.split('\0').slice(0, -1));
}

/** What oclif makes of them; it throws on an argument that the command does not have. */
async function parse(given: readonly string[]): Promise<void> {
  const argv = condorHabits(given, COMMANDS);
  const two = argv.slice(0, 2).join(':');
  const id = two in COMMANDS ? two : (argv[0] ?? '');
  const command = COMMANDS[id as keyof typeof COMMANDS];
  if (command === undefined) throw new Error(`no command ${JSON.stringify(given)}`);
  const rest = argv.slice(id.split(':').length);
  const own = id === 'map' ? rest.slice(0, inputWords(rest).at) : rest;
  await Parser.parse(own, {
    args: command.args,
    flags: { ...command.baseFlags, ...command.flags },
    strict: command.strict,
  } as never);
}

describe('the examples of the help', () => {
  const all = Object.entries(COMMANDS).map(([id, { examples }]) => ({
    id,
    examples: examples.map((one) => one.replaceAll('<%= config.bin %>', 'gryphus')),
  }));

  it('are two at least', () => {
    expect(all.filter(({ examples }) => examples.length < 2).map(({ id }) => id)).toEqual([]);
  });

  it.each(all)('$id takes its own', async ({ id, examples }) => {
    for (const line of examples) {
      const commands = words(line.replace(/^source /, ': '));
      expect(commands.map((one) => one.join(' ').startsWith(id.replace(':', ' ')))).toContain(true);
      for (const one of commands) await parse(one);
    }
  });
});

it('the commands of the pages are taken, too', async () => {
  const pages = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)];
  const lines = pages
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) => readFileSync(join(root, name), 'utf8').split('\n'))
    .filter((line) => /^gryphus [a-z]/.test(line));
  expect(lines.length).toBeGreaterThan(10);
  for (const line of lines) for (const one of words(line)) await parse(one);
});
