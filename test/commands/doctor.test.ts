import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { gryphus } from './cli.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gry-'));
  mkdirSync(join(home, 'bin'));
  program('timedatectl', 'echo yes');
  program('ssh', 'exit 0');
  program('redis-server', 'exit 0');
});
afterEach(() => rmSync(home, { recursive: true }));

function program(name: string, script: string): void {
  writeFileSync(join(home, 'bin', name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(home, 'bin', name), 0o755);
}

interface Step {
  readonly step: string;
  readonly ok: boolean;
  readonly remedy?: string;
}

/** What is to be mended, as far as this test decides it. */
async function bad(): Promise<readonly string[]> {
  const env = { PATH: join(home, 'bin'), HOME: home };
  const { stdout } = await gryphus(['doctor', '--json'], { home, env });
  const steps = JSON.parse(stdout) as Step[];
  const ours = steps.filter(({ step }) => step !== 'systemd' && step !== 'disk');
  for (const { ok, remedy } of ours) if (!ok) expect(remedy).toBeTruthy();
  return ours.filter(({ ok }) => !ok).map(({ step }) => step);
}

it('finds nothing where all is well', async () => {
  expect(await bad()).toEqual([]);
});

it('says what is wrong, each with what to do', async () => {
  program('timedatectl', 'echo no');
  program('ssh', 'exit 255');
  mkdirSync(join(home, '.ssh'));
  for (const name of ['id_ed25519', 'id_ed25519.pub']) writeFileSync(join(home, '.ssh', name), '', { mode: 0o644 });
  mkdirSync(join(home, 'state'), { mode: 0o755 });
  writeFileSync(
    join(home, 'config.toml'),
    '[notify]\nemail = "jane@example.org"\nsendmail = "/no/sendmail"\n[redis]\nserver = "/no/redis"\n',
  );
  expect(await bad()).toEqual(['redis', 'state directory', 'ssh', 'ssh keys', 'clock', 'mail']);
});

it('ends at a configuration that cannot be read, with its line', async () => {
  writeFileSync(join(home, 'config.toml'), 'pool = {\n');
  const { stdout, exit } = await gryphus(['doctor'], { home });
  expect([exit, stdout]).toEqual([1, expect.stringContaining('✗ configuration: ')]);
});
