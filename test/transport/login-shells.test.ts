import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Transport } from '../../src/transport/contract.ts';
import { openTransport } from '../../src/transport/open-transport.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { NAMES } from './conformance.ts';

/** Shells that people have at sites, each with a start file that prints when it must not. */
const SHELLS: readonly { shell: string; startFile: string; noise: string; noPath?: string }[] = [
  {
    shell: '/bin/bash',
    startFile: '.bashrc',
    noise: 'echo "Welcome! \'$USER\'"; echo grumble >&2',
    noPath: 'export PATH=/nowhere',
  },
  { shell: '/bin/dash', startFile: '.profile', noise: '' },
  { shell: '/usr/bin/zsh', startFile: '.zshenv', noise: 'echo noise; setopt noclobber extendedglob', noPath: 'PATH=' },
  {
    shell: '/usr/bin/tcsh',
    startFile: '.tcshrc',
    noise: 'echo noise; alias printf echo',
    noPath: 'setenv PATH /nowhere',
  },
  { shell: '/bin/csh', startFile: '.cshrc', noise: 'echo noise' },
  {
    shell: '/usr/bin/fish',
    startFile: '.config/fish/config.fish',
    noise: 'echo noise',
    noPath: 'set -x PATH /nowhere',
  },
];

for (const { shell, startFile, noise, noPath } of SHELLS) {
  describe.skipIf(!existsSync(shell))(`login shell ${shell}`, () => {
    let sshd: Sshd;
    let transports: Transport[];
    beforeAll(async () => {
      sshd = await startSshd({ shell });
      mkdirSync(join(sshd.home, startFile, '..'), { recursive: true });
      writeFileSync(join(sshd.home, startFile), `${noise}\n`);
      const kinds = ['ssh2', 'openssh'] as const;
      transports = await Promise.all(
        kinds.map((transport) => openTransport('site', { transport, sshConfigFile: sshd.sshConfigFile })),
      );
    });
    afterAll(async () => {
      await Promise.all(transports.map((transport) => transport.close()));
      await sshd.stop();
    });

    test.skipIf(noise === '')('its start file speaks before any command', () => {
      expect(execFileSync('ssh', ['-F', sshd.sshConfigFile, 'site', 'true'], { encoding: 'utf8' })).not.toBe('');
    });

    test('a POSIX command runs as it is written, and its output is its own', async () => {
      const words = [...NAMES, '!!', '\\!', "'!'", 'a\n!b\n', '\\\\', '`', '"$HOME"', '\r', '\x01\x7f'];
      for (const transport of transports) {
        const script = `set -- ${words.map(shellQuote).join(' ')}\nfor w in "$@"; do printf '%s\\0' "$w"; done; echo bad >&2; exit 9`;
        const result = await transport.run(script);
        expect(result.code).toBe(9);
        expect(result.stderr.toString()).toBe('bad\n');
        expect(result.stdout.toString().split('\0').slice(0, -1)).toEqual(words);
      }
    });

    test.skipIf(noPath === undefined)(
      "the system's programs are found, though a start file leaves no PATH to them",
      async () => {
        const file = join(sshd.home, startFile);
        const before = readFileSync(file, 'utf8');
        writeFileSync(file, `${before}${noPath}\n`);
        try {
          for (const transport of transports) {
            expect((await transport.run('uname -n | wc -l; echo "$PATH"')).stdout.toString()).toMatch(
              /^1\n(\/nowhere:)?\/usr\/local\/bin:\/usr\/bin:\/bin\n$/,
            );
          }
        } finally {
          writeFileSync(file, before);
        }
      },
    );

    test("standard input is the command's alone, and files pass", async () => {
      for (const transport of transports) {
        expect((await transport.run('cat', { stdin: 'a\nb!\n' })).stdout.toString()).toBe('a\nb!\n');
        const file = join(sshd.configDir, 'file');
        writeFileSync(file, 'content!\n');
        await transport.put(file, "it's here!");
        await transport.get("it's here!", `${file}.back`);
        expect((await transport.run(`cat ${shellQuote("it's here!")}`)).stdout.toString()).toBe('content!\n');
      }
    });
  });
}

test.each(['ssh2', 'openssh'] as const)(
  '%s: a login shell that runs no command is reported, with its message',
  async (transport) => {
    const sshd = await startSshd({ shell: '/usr/sbin/nologin' });
    const site = await openTransport('site', { transport, sshConfigFile: sshd.sshConfigFile });
    try {
      const refusal = site.run('true');
      await expect(refusal).rejects.toMatchObject({ code: 'site-refused', retry: 'never' });
      await expect(refusal).rejects.toThrow(/currently not available/);
    } finally {
      await site.close();
      await sshd.stop();
    }
  },
);

describe.each(['ssh2', 'openssh'] as const)('%s: a login shell that never runs a command', (transport) => {
  test.each([
    ['hangs', 'echo "I wait"; exec sleep 1000', /ran no command within 2 s; it said: I wait/],
    ['prints for ever', 'while :; do echo y; done', /ran no command within 2 s; it said: (y\s)+/],
    ['says nothing', 'exec sleep 1000', /ran no command within 2 s\./],
  ])(
    'is reported as such: it %s',
    async (_, startFile, words) => {
      const sshd = await startSshd({ shell: '/usr/bin/zsh' });
      const site = await openTransport('site', { transport, sshConfigFile: sshd.sshConfigFile, startMs: 2000 });
      try {
        expect((await site.run('echo good')).stdout.toString()).toBe('good\n');
        writeFileSync(join(sshd.home, '.zshenv'), `[ -e "$HOME/right" ] || { ${startFile}; }\n`);
        const late = site.run('true');
        await expect(late).rejects.toMatchObject({ code: 'timeout', retry: 'later' });
        await expect(late).rejects.toThrow(words);
        // Nothing of it is left that would keep the next one from running.
        writeFileSync(join(sshd.home, 'right'), '');
        expect((await site.run('echo good')).stdout.toString()).toBe('good\n');
      } finally {
        await site.close();
        await sshd.stop();
      }
    },
    30_000,
  );
});

test.each(['ssh2', 'openssh'] as const)(
  '%s: output without end is not kept',
  async (transport) => {
    const sshd = await startSshd();
    const site = await openTransport('site', { transport, sshConfigFile: sshd.sshConfigFile });
    try {
      await expect(site.run('exec yes')).rejects.toThrow(/"exec yes" on .* printed more than 64 MB/);
      const many = await site.run('head -c 5000000 /dev/zero >&2; echo out');
      expect(many.stdout.toString()).toBe('out\n');
      expect(many.stderr.length).toBeLessThanOrEqual(1 << 20);
    } finally {
      await site.close();
      await sshd.stop();
    }
  },
  60_000,
);
