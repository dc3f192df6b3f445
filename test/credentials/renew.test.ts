import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeProxy } from '../../src/credentials/delegation.ts';
import { renew } from '../../src/credentials/renew.ts';
import { inspect, type Source } from '../../src/credentials/sources.ts';
import { defaultFiles, destroyFile, loadProxy, loadUser, saveProxy } from '../../src/credentials/store.ts';
import { DEFAULT_WATCH, type Memories, type WatchedJob } from '../../src/credentials/watch/model.ts';
import { renewed } from '../../src/credentials/watch/renewal.ts';
import { look } from '../../src/credentials/watch/watch.ts';
import type { Credential } from '../../src/credentials/x509/proxy-file.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { bytesOf, type GridCa, makeGridCa, type Person } from '../sites/grid-ca.ts';

const SECRET = 'pl4nted-secret';
const dir = mkdtempSync(join(tmpdir(), 'ren-'));
let ca: GridCa;
let jane: Person;
let user: Credential;
const now = Math.floor(Date.now() / 1000);

beforeAll(async () => {
  ca = makeGridCa();
  jane = ca.person('Jane User');
  user = await loadUser(jane.cert, jane.key);
});
afterAll(() => {
  ca.stop();
  rmSync(dir, { recursive: true });
});
const ec = { now, keyType: 'ec' } as const;
const by = (command: string, timeoutMs = 20_000) => ({ renewal: { by: 'command', command, timeoutMs } }) as const;

describe('a credential as it is found', () => {
  it('is a proxy, with the end that counts', async () => {
    const file = join(dir, 'a proxy $(x)');
    saveProxy(file, await makeProxy(user, { ...ec, lifetime: 1000 }));
    const found = inspect({ kind: 'x509-proxy', name: 'jane', file });
    expect(found).toMatchObject({ what: 'X.509 proxy', end: now + 1000, renews: false, holds: true });
    expect(found.problem).toBeUndefined();
    saveProxy(file, await makeProxy(user, { ...ec, lifetime: 1000 }));
    expect(inspect({ kind: 'x509-proxy', name: 'jane', file }).version).not.toBe(found.version);
  });

  it('is an SSH certificate, with its key', () => {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', 'id'], { cwd: dir });
    execFileSync('ssh-keygen', ['-q', '-s', 'id', '-I', 'x', '-V', '+2m', 'id.pub'], { cwd: dir });
    const source: Source = { kind: 'ssh-certificate', name: 'site', file: join(dir, 'id-cert.pub') };
    const found = inspect(source);
    expect((found.end ?? 0) - now).toBeGreaterThan(60);
    expect((found.end ?? 0) - now).toBeLessThan(200);
    chmodSync(join(dir, 'id'), 0o640);
    expect(inspect(source).problem).toContain('(mode 0640), so it is refused.');
    rmSync(join(dir, 'id'));
    expect(inspect(source).problem).toBe(`There is no key ${join(dir, 'id')}.`);
  });

  it('is a key that a site takes for a day from when it was written', () => {
    const file = join(dir, 'day key');
    writeFileSync(file, SECRET, { mode: 0o600 });
    utimesSync(file, now, now - 1000);
    expect(inspect({ kind: 'ssh-key', name: 'k', file, lifetime: 86_400 })).toMatchObject({
      start: now - 1000,
      end: now - 1000 + 86_400,
    });
    expect(inspect({ kind: 'ssh-key', name: 'k', file, until: 77 }).end).toBe(77);
    expect(inspect({ kind: 'ssh-key', name: 'k', file }).end).toBeUndefined();
  });

  it('is an allocation with an end', () => {
    expect(inspect({ kind: 'allocation', name: 'project', until: 5 })).toMatchObject({ what: 'allocation', end: 5 });
  });

  it.each([
    ['of others', () => writeFileSync(join(dir, 'bad'), readFileSync(jane.key), { mode: 0o644 }), 'Others can use'],
    ['of nothing', () => writeFileSync(join(dir, 'bad'), '', { mode: 0o600 }), 'holds no certificate'],
    [
      'of garbage',
      () =>
        writeFileSync(join(dir, 'bad'), `-----BEGIN CERTIFICATE-----\n${SECRET}\n-----END CERTIFICATE-----\n`, {
          mode: 0o600,
        }),
      'cannot be read',
    ],
    [
      'of a key alone',
      () => writeFileSync(join(dir, 'bad'), readFileSync(jane.key), { mode: 0o600 }),
      'holds no certificate',
    ],
  ])('is a problem in one sentence when the file is one %s', (_what, make, message) => {
    make();
    const { problem } = inspect({ kind: 'x509-proxy', name: 'bad', file: join(dir, 'bad') });
    expect(problem).toContain(message);
    expect(problem).not.toContain(SECRET);
    expect(problem).not.toContain('PRIVATE');
    rmSync(join(dir, 'bad'));
  });
});

describe('a renewal by command', () => {
  it('is determined by the file, and what the command prints is nowhere', async () => {
    const file = join(dir, 'by command');
    saveProxy(file, await makeProxy(user, { ...ec, lifetime: 600 }));
    const command = `echo ${SECRET}; echo ${SECRET} >&2; X509_CERT_DIR=${shellQuote(ca.trust)} grid-proxy-init -q -valid 2:00 -out ${shellQuote(file)} -cert ${shellQuote(jane.cert)} -key ${shellQuote(jane.key)}`;
    const done = await renew({ kind: 'x509-proxy', name: 'jane', file, ...by(command) });
    expect(done.ok ? '' : done.message).toBe('');
    expect(done.now.end).toBeGreaterThan(now + 7000);
    expect(JSON.stringify(done)).not.toContain(SECRET);
  });

  it.each([
    ['fails', `echo ${SECRET} >&2; exit 4`, 'The renew_command exited with status 4; run it by hand to see why.'],
    ['changes nothing', 'true', 'The renewal succeeded, but the X.509 proxy still ends at '],
    ['hangs', 'sleep 60', 'The renew_command did not end within 0.3 s; run it by hand to see why.'],
    ['writes rubbish', `printf '${SECRET}' >"$F"`, 'holds no certificate'],
    ['opens the file to all', 'chmod 644 "$F"', 'so it is refused'],
  ])('that %s is a failure in one sentence', async (_what, command, message) => {
    const file = join(dir, 'failing');
    saveProxy(file, await makeProxy(user, { ...ec, lifetime: 600 }));
    const source: Source = {
      kind: 'x509-proxy',
      name: 'jane',
      file,
      ...by(`F=${shellQuote(file)}; ${command}`, command === 'sleep 60' ? 300 : 20_000),
    };
    const done = await renew(source);
    expect(done).toMatchObject({ ok: false, message: expect.stringContaining(message) });
    expect(JSON.stringify(done)).not.toContain(SECRET);
    rmSync(file);
  });

  it('makes what was gone', async () => {
    const [file, spare] = [join(dir, 'gone'), join(dir, 'spare')];
    saveProxy(spare, await makeProxy(user, ec));
    const done = await renew({
      kind: 'x509-proxy',
      name: 'x',
      file,
      ...by(`cp -p ${shellQuote(spare)} ${shellQuote(file)}`),
    });
    expect(done.ok).toBe(true);
  });

  it('is nothing where nothing is set', async () => {
    expect(await renew({ kind: 'allocation', name: 'p', until: 1 })).toMatchObject({ ok: false });
  });
});

describe('the store', () => {
  it('keeps proxies closed, and gives them back as they were', async () => {
    const file = join(dir, 'kept');
    const proxy = await makeProxy(user, ec);
    saveProxy(file, proxy);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(loadProxy(file).chain.map((one) => one.serial)).toEqual(proxy.chain.map((one) => one.serial));
    chmodSync(file, 0o604);
    expect(() => loadProxy(file)).toThrow('(mode 0604), so it is refused.');
  });

  it('overwrites before it removes, and touches nothing that is not a file of ours', async () => {
    const [file, twin, link] = [join(dir, 'doomed'), join(dir, 'twin'), join(dir, 'link')];
    saveProxy(file, await makeProxy(user, ec));
    const { size } = statSync(file);
    execFileSync('ln', [file, twin]);
    expect(destroyFile(file)).toBe(true);
    expect(existsSync(file)).toBe(false);
    expect(bytesOf(twin)).toEqual(Buffer.alloc(size));
    expect(destroyFile(file)).toBe(false);
    symlinkSync(twin, link);
    expect(() => destroyFile(link)).toThrow('was left alone');
    expect(() => destroyFile(dir)).toThrow('was left alone');
  });

  it('finds files where the grid tools look', () => {
    expect(defaultFiles({}, '/home/jane', 1000)).toEqual({
      cert: '/home/jane/.globus/usercert.pem',
      key: '/home/jane/.globus/userkey.pem',
      proxy: '/tmp/x509up_u1000',
      trust: '/etc/grid-security/certificates',
    });
    expect(defaultFiles({ X509_USER_PROXY: '/p', X509_CERT_DIR: '/t' }, '/h', 1)).toMatchObject({
      proxy: '/p',
      trust: '/t',
    });
  });

  it('asks for a passphrase only where there is a lock', async () => {
    const locked = ca.person('Locked', { passphrase: SECRET });
    const never = () => Promise.reject(new Error('asked'));
    await loadUser(jane.cert, jane.key, never);
    const asked = Buffer.from(SECRET);
    await loadUser(locked.cert, locked.key, () => Promise.resolve(asked));
    expect(asked).toEqual(Buffer.alloc(SECRET.length)); // wiped
    await expect(loadUser(locked.cert, locked.key)).rejects.toMatchObject({ code: 'needs-login' });
    await expect(loadUser(jane.cert, locked.key, () => Promise.resolve(Buffer.from(SECRET)))).rejects.toThrow(
      'does not match its certificate',
    );
  });
});

describe('a job is carried over three real ends', () => {
  it('held, alarmed, renewed by command, released, and its copy refreshed, each time', async () => {
    const file = join(dir, 'carried');
    const spare = join(dir, 'next');
    const source: Source = {
      kind: 'x509-proxy',
      name: 'jane',
      file,
      ...by(`cp ${shellQuote(spare)} ${shellQuote(file)}`),
    };
    let job: WatchedJob = { id: { cluster: 1, proc: 0 }, site: 'alpha', needs: ['jane'], where: 'waiting' };
    let version = 'none';
    let memories: Memories = {};
    let clock = now;
    const told: string[] = [];
    const turn = async (): Promise<void> => {
      const seen = look({
        now: clock,
        credentials: [inspect(source)],
        jobs: [job],
        copies: [{ credential: 'jane', site: 'alpha', version }],
        memories,
        config: DEFAULT_WATCH,
      });
      memories = seen.memories;
      for (const action of seen.actions) {
        if (action.do === 'hold') job = { ...job, where: 'held' };
        else if (action.do === 'release') job = { ...job, where: 'waiting' };
        else if (action.do === 'refresh') ({ version } = action);
        else if (action.do === 'renew') {
          const done = await renew(source);
          const memory = memories['jane'];
          if (memory === undefined) continue;
          const renewal = renewed(memory.renewal, done.now, clock, DEFAULT_WATCH, done.ok ? undefined : done.message);
          memories = { ...memories, jane: { ...memory, renewal } };
        } else told.push(action.news.news);
      }
    };
    saveProxy(file, await makeProxy(user, { ...ec, now: clock, lifetime: 7200 }));
    for (let round = 0; round < 3; round++) {
      rmSync(spare, { force: true });
      await turn();
      expect(job.where).toBe('waiting');
      expect(version).toBe(inspect(source).version);
      clock += 7200;
      await turn(); // The renewal fails, so there is nothing to copy.
      await turn();
      expect(job.where).toBe('held');
      saveProxy(spare, await makeProxy(user, { ...ec, now: clock, lifetime: 7200 }));
      clock += 3600; // longer than any pause
      await turn();
      await turn();
      expect(job.where).toBe('waiting');
    }
    expect(told).toEqual(['ended', 'fresh', 'ended', 'fresh', 'ended', 'fresh']);
  });
});
