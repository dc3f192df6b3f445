import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allCommands } from '../../src/commands/registry.ts';
import { completionScript } from '../../src/commands/show/completion.ts';

const COMMANDS = await allCommands();

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'gry-'));
  // Completion of site names runs the command itself.
  writeFileSync(
    join(dir, 'gryphus'),
    '#!/bin/sh\ncase "$*" in "site list --quiet") printf "local\\ncluster1\\n" ;; *"--words jobs") printf "12\\n12.3\\n" ;; *"--words keys") printf "notify.email\\npool.cpus\\n" ;; esac\n',
  );
  chmodSync(join(dir, 'gryphus'), 0o755);
});
afterAll(() => rmSync(dir, { recursive: true }));

function shell(program: string, args: readonly string[], input: string): string[] {
  const env = { PATH: `${dir}:${process.env['PATH']}`, HOME: dir, TERM: 'dumb' };
  return execFileSync(program, args, { input, env, cwd: dir, encoding: 'utf8' }).trim().split(/\s*\n/);
}

function bash(words: readonly string[]): string[] {
  const quoted = words.map((word) => `'${word}'`).join(' ');
  const script = `${completionScript('bash', COMMANDS)}
COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _gryphus; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return shell('bash', ['--norc', '-u'], script);
}

function fish(line: string): string[] {
  const script = `${completionScript('fish', COMMANDS)}\ncomplete -C ${JSON.stringify(line)}\n`;
  return shell('fish', ['--no-config', '-c', script], '').map((one) => one.split('\t')[0] ?? '');
}

describe('bash', () => {
  it.each([
    [['gryphus', 'sub'], ['submit']],
    [
      ['gryphus', 'site', 'l'],
      ['list', 'login'],
    ],
    [['gryphus', 'site', 'test', 'cl'], ['cluster1']],
    [['gryphus', 'q', '--no'], ['--nobatch']],
    [
      ['gryphus', 'rm', '7', '12'],
      ['12', '12.3'],
    ],
    [['gryphus', 'config', 'no'], ['notify.email']],
    [
      ['gryphus', 'site', 'add', 'x', '--batch', 's'],
      ['slurm', 'sge'],
    ],
    [['gryphus', 'site', 'add', '--pre'], ['--prelude']],
    [['gryphus', 'submit', 'my'], ['']],
    [
      ['gryphus', 'site', 'test', '--js'],
      ['--json', '--jsonl'],
    ],
    [['gryphus', 'glidein', 'start', '--site', 'cl'], ['cluster1']],
    [
      ['gryphus', 'cred', 'proxy', 'in'],
      ['init', 'info'],
    ],
    [['gryphus', 'dag', 'draw', '--format', 'm'], ['mermaid']],
    [['gryphus', 'q', '--format', 'm'], ['']],
    [['gryphus', 'completion', 'f'], ['fish']],
    [['gryphus', 'nosuch', 'x'], ['']],
  ])('%j', (words, want) => expect(bash(words)).toEqual(want));
});

describe('fish', () => {
  it.each([
    ['gryphus sub', ['submit']],
    ['gryphus site l', ['list', 'login']],
    ['gryphus site test cl', ['cluster1']],
    ['gryphus q --no', ['--nobatch']],
    ['gryphus rm 12.', ['12.3']],
    ['gryphus config pool', ['pool.cpus']],
    ['gryphus site add --batch sl', ['slurm']],
    ['gryphus glidein start --site cl', ['cluster1']],
    ['gryphus cred proxy in', ['info', 'init']],
  ])('%s', (line, want) => expect(fish(line)).toEqual(want));
});

describe('zsh', () => {
  it('takes the script without a complaint, and it completes commands, options and sites', () => {
    const script = `
zmodload zsh/zpty
zpty z zsh -f -i
print_until() { local out; while zpty -r z out; do print -rn -- "$out"; [[ "$out" == *"$1"* ]] && return; done }
zpty -w z "PS1=; autoload -Uz compinit; compinit -u -d ${dir}/dump; source ${dir}/_gryphus; zstyle ':completion:*' list-prompt ''; setopt no_beep auto_list; LISTMAX=1000; print re''ady"
print_until ready >/dev/null
for line in 'gryphus sub' 'gryphus site logi' 'gryphus site test cl' 'gryphus q --nob' 'gryphus glidein start --site cl' 'gryphus completion fi'; do
  zpty -w -n z "$line"$'\\t'
  zpty -w z " # e""nd"
  print_until '2004l'
done
zpty -d z
`;
    writeFileSync(join(dir, '_gryphus'), completionScript('zsh', COMMANDS));
    writeFileSync(join(dir, 'try.zsh'), script);
    const seen = shell('zsh', ['-f', join(dir, 'try.zsh')], '').join('\n');
    for (const word of [
      'submit',
      'site login',
      'site test cluster1',
      'q --nobatch',
      '--site cluster1',
      'completion fish',
    ])
      expect(seen).toContain(word);
  }, 60_000);
});
