import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeProxy, signDelegation } from '../../src/credentials/delegation.ts';
import { loadUser } from '../../src/credentials/store.ts';
import { parseAttemptKey } from '../../src/job/ids.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { openJobManagerSite } from '../../src/jobmanager/client.ts';
import { LocalTransport } from '../../src/transport/local.ts';
import { makeGridCa } from '../sites/grid-ca.ts';

const dir = mkdtempSync('/tmp/gdg-');
const ca = makeGridCa();
const jane = ca.person('Jane Roe');
const transport = new LocalTransport();
const site = openJobManagerSite({
  name: 'here',
  agentId: 'agent12345',
  transport,
  backend: 'fork',
  options: { scratch: join(dir, 'scratch') },
});
const proxyFile = join(dir, 'scratch/agent12345/proxies/p1/x509up');
const now = () => Math.floor(Date.now() / 1000);

afterAll(async () => {
  await site.close();
  await transport.close();
  ca.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** A proxy below Jane's, by delegation; returns what crossed the wire. */
async function delegateOnce(lifetime: number): Promise<string[]> {
  const ours = await makeProxy(await loadUser(jane.cert, jane.key), { now: now(), lifetime: 3600 });
  const crossed: string[] = [];
  await site.delegate?.('p1', async (request) => {
    const answer = signDelegation(request, ours, { now: now(), lifetime });
    crossed.push(request, answer);
    return answer;
  });
  return crossed;
}

const verify = () =>
  execFileSync('openssl', ['verify', '-allow_proxy_certs', '-CApath', ca.trust, '-untrusted', proxyFile, proxyFile], {
    encoding: 'utf8',
  });

describe('delegation to a site', () => {
  it('puts a proxy there that openssl verifies, with a key that never travels', async () => {
    const crossed = await delegateOnce(600);
    expect(crossed.join('')).not.toContain('PRIVATE KEY');
    expect(statSync(proxyFile).mode & 0o777).toBe(0o600);
    expect(readFileSync(proxyFile, 'utf8')).toMatch(/CERTIFICATE-----\n-----BEGIN (RSA )?PRIVATE KEY/);
    expect(verify()).toContain('OK');
  });

  it('replaces it as a whole, with another key', async () => {
    const before = readFileSync(proxyFile, 'utf8');
    await delegateOnce(900);
    const after = readFileSync(proxyFile, 'utf8');
    expect(keyOf(after)).not.toBe(keyOf(before));
    expect(verify()).toContain('OK');
  });

  it('refuses an answer to another key, and asks anew', async () => {
    const ours = await makeProxy(await loadUser(jane.cert, jane.key), { now: now() });
    let asked = 0;
    await site.delegate?.('p1', async (request) => {
      asked += 1;
      return asked === 1 ? readFileSync(proxyFile, 'utf8') : signDelegation(request, ours, { now: now() });
    });
    expect(asked).toBe(2);
    expect(verify()).toContain('OK');
  });

  it('gives the job its X509_USER_PROXY', async () => {
    const key = 'agent12345.1.0.1' as AttemptKey;
    expect(parseAttemptKey(key)).toBeDefined();
    const script = join(dir, 'job.sh');
    writeFileSync(script, '#!/bin/sh\nopenssl x509 -noout -subject -in "$X509_USER_PROXY"\n', { mode: 0o755 });
    const spec = {
      key,
      title: 'job',
      executable: { kind: 'there', path: script },
      args: [],
      env: { X509_USER_PROXY: '/not/this/one' },
      inputs: [],
      proxy: 'p1',
      joinStderr: true,
      resources: { cpus: 1, memoryMb: undefined, diskKb: undefined, gpus: undefined, walltimeSeconds: undefined },
      batch: { extraArgs: [] },
    } as const;
    expect((await site.prepare([spec])).get(key)).toEqual({ ok: true });
    await site.commit([key]);
    let cursor: string | undefined;
    for (let ended = false; !ended; ) {
      const answer = await site.poll({ cursor, follow: [], waitMs: 5000 });
      cursor = answer.cursor;
      ended = answer.reports.some((report) => report.is === 'ended');
    }
    const fetched = (await site.fetch([{ key, outputs: [], stdout: true, stderr: false, into: dir }])).get(key);
    const stdout = fetched?.ok ? fetched.files.find((file) => file.kind === 'stdout')?.path : undefined;
    expect(readFileSync(stdout ?? '', 'utf8')).toMatch(/CN ?= ?Jane Roe/);
    await site.forget([key]);
  }, 30_000);
});

function keyOf(file: string): string | undefined {
  return /-----BEGIN (?:RSA )?PRIVATE KEY-----[\s\S]*?-----END/.exec(file)?.[0];
}
