import { chmodSync, chownSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { textsInForce } from '../../../src/pool/owner/in-force.ts';
import { readRootPolicy } from '../../../src/pool/owner/root-policy.ts';
import { WorkerMachine } from '../../../src/pool/worker/worker-machine.ts';
import { until } from '../../agent/agent.ts';
import type { WorkerConfig } from '../../../src/pool/wire/worker-config.ts';

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'root-policy-'));
  file = join(dir, 'owner-policy.toml');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const write = (text: string, mode = 0o644) => {
  writeFileSync(file, text);
  chmodSync(file, mode);
};
const refused = (message: RegExp) =>
  expect(readRootPolicy(file)).rejects.toThrow(
    expect.objectContaining({ code: 'bad-config', message: expect.stringMatching(message) }),
  );

describe('the policy that root sets for a machine', () => {
  it('is none without the file', async () => {
    expect(await readRootPolicy(file)).toBeUndefined();
  });

  it.runIf(isRoot)('says what the file says, and leaves the rest to the user', async () => {
    write('policy = "desktop"\noff = "graceful"\nkeep = 2\nsuspend = "KeyboardIdle < 10"\n');
    expect(await readRootPolicy(file)).toMatchObject({
      policy: 'desktop',
      off: 'graceful',
      keep: 2,
      polling: undefined,
      expressions: { SUSPEND: 'KeyboardIdle < 10' },
    });
  });

  it.runIf(isRoot)('is refused if another user owns it, or others may write it, or it is a link', async () => {
    write('policy = "always"\n');
    chownSync(file, 65534, 65534);
    await refused(/does not belong to root/);
    for (const mode of [0o664, 0o646]) {
      chownSync(file, 0, 0);
      chmodSync(file, mode);
      await refused(/users other than root can write to it/);
    }
    rmSync(file);
    writeFileSync(join(dir, 'other'), 'policy = "always"\n');
    symlinkSync(join(dir, 'other'), file);
    await refused(/does not belong to root/);
  });

  it.skipIf(isRoot)('is refused if a user made it', async () => {
    write('policy = "always"\n');
    await refused(/does not belong to root/);
  });

  it.runIf(isRoot)('names the file and the line of what is wrong in it', async () => {
    write('keep = 1\npolicy = "desktpo"\n');
    await refused(/owner-policy\.toml, line 2/);
    write('keep = 1\n\nsuspnd = "true"\n');
    await refused(/owner-policy\.toml, line 3/);
  });

  describe.runIf(isRoot)('on a running worker', () => {
    async function machine() {
      const said: string[] = [];
      const config = join(dir, 'config.json');
      const values = { token: 't', secret: 's', name: 'n', site: 'here', dir, socket: '/s', cpus: 4, memoryMb: 100 };
      writeFileSync(config, JSON.stringify(values), { mode: 0o600 });
      const options = { config: values, file: config, instance: 'w', environment: {}, rootPolicy: file };
      const worker = await new WorkerMachine({ ...options, log: (message) => said.push(message) }).open();
      const follows = (what: string, is: () => boolean) => until(what, () => worker.look() || is() || undefined, 1000);
      return { worker, said, follows };
    }

    it('is in force within a second, and stays so while the file is wrong', async () => {
      const { worker, said, follows } = await machine();
      expect([worker.off(0), worker.policy.texts.SUSPEND, worker.size.cpus]).toEqual([undefined, 'false', 4]);
      write('keep = 1\nsuspend = "KeyboardIdle < 7"\n');
      await follows('the change', () => worker.size.cpus === 3);
      expect([worker.policy.texts.SUSPEND, worker.size.cpus]).toEqual(['KeyboardIdle < 7', 3]);
      write('keep = 2\n\nsuspend = "KeyboardIdle <"\n');
      await follows('the complaint', () => said.length > 0);
      expect(said.at(-1)).toMatch(
        /owner-policy\.toml, line 3: 'suspend' must be .* column 15: .* The previous settings stay in force/,
      );
      expect([worker.policy.texts.SUSPEND, worker.size.cpus, worker.off(0)]).toEqual([
        'KeyboardIdle < 7',
        3,
        undefined,
      ]);
      rmSync(file);
      await follows('its end', () => worker.size.cpus === 4);
      expect(worker.policy.texts.SUSPEND).toBe('false');
    });

    it('lets nothing start if it never was right', async () => {
      write('off = "nwo"\n');
      const { worker, said, follows } = await machine();
      expect(said).toEqual([expect.stringMatching(/line 1: 'off' must be .* No job is taken until it is corrected/)]);
      expect(worker.off(0)).toMatchObject({ how: 'peaceful' });
      write('keep = 1\n');
      await follows('its correction', () => worker.off(0) === undefined);
      expect([worker.off(0), worker.size.cpus]).toEqual([undefined, 3]);
    });
  });

  it('takes the place of all of the user’s expressions where it names a policy', () => {
    const user: WorkerConfig = {
      token: 't',
      secret: 's',
      name: 'n',
      site: 'here',
      dir,
      start: 'false',
      policy: { name: 'always', expressions: { SUSPEND: 'false' } },
    };
    const none = {
      attributes: {},
      polling: undefined,
      idleSources: undefined,
      ignoreTerminals: [],
      off: undefined,
      keep: undefined,
    };
    const named = textsInForce(user, { ...none, policy: 'hunter', expressions: {} });
    expect(named.START).not.toBe('false');
    expect(named.SUSPEND).not.toBe('false');
    const one = textsInForce(user, { ...none, policy: undefined, expressions: { KILL: 'true' } });
    expect(one).toMatchObject({ START: 'false', SUSPEND: 'false', KILL: 'true' });
  });
});
