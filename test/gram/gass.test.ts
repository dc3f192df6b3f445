import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { dirname, join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseGramContact } from '../../src/config/gram-resource.ts';
import { tlsCredential } from '../../src/credentials/gsi/connect.ts';
import { saveProxy } from '../../src/credentials/store.ts';
import { openCaDirectory } from '../../src/credentials/x509/ca-directory.ts';
import type { Credential } from '../../src/credentials/x509/proxy-file.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { FlushedDisk } from '../flushed-disk.ts';
import { freshKey, shellJob, Watch } from '../conformance/kit.ts';
import { globus, missingPrograms } from '../sites/gatekeeper.ts';
import { type Grid, proxyFor, startGrid } from './kit.ts';
import { GramClient } from '../../src/gram/client.ts';
import type { AuditableSite } from '../../src/site/audit.ts';

const PROGRAMS = ['/usr/sbin/globus-gatekeeper', '/usr/bin/globusrun', '/usr/bin/globus-url-copy'];
const MISSING = missingPrograms(PROGRAMS);
let grid: Grid;
let site: AuditableSite;
/** Of a job that waits for its commit, and of one that runs. */
let base: string;
let sent: string;
let contact: string;
let sentContact: string;
const [key, running] = [freshKey(), freshKey()];

beforeAll(async () => {
  if (MISSING.length > 0) return;
  grid = await startGrid();
  site = await grid.open();
  await site.prepare([shellJob(key, 'sleep 600'), shellJob(running, 'sleep 600')]);
  await site.commit([running]);
  [base, contact] = urlOf(key);
  [sent, sentContact] = urlOf(running);
}, 60_000);
afterAll(async () => {
  await site?.cancel([key, running]);
  await grid?.stop();
}, 60_000);

/** Where the attempt's files are, and its job contact. */
function urlOf(one: AttemptKey): [base: string, contact: string] {
  const record = JSON.parse(readFileSync(join(grid.dir, 'state/jobs', one, 'record.json'), 'utf8')) as {
    origin: string;
    token: string;
    contact: string;
  };
  return [`${record.origin}/${one}/${record.token}`, record.contact];
}

const copy = (proxy: string, from: string, to: string) => globus(grid.ca, proxy, '/usr/bin/globus-url-copy', from, to);
const home = (name: string) => join(grid.dir, 'state/jobs', key, name);

interface Said {
  readonly status: number;
  readonly reused: boolean;
}

/** One request as a job manager makes it. */
function ask(credential: Credential | undefined, method: string, url: string, body = '', headers = {}): Promise<Said> {
  const tls = credential && tlsCredential(credential);
  return new Promise((resolve, reject) => {
    const going = request(
      url,
      { method, ...tls?.options, rejectUnauthorized: false, agent: false, headers },
      (answer) => {
        answer.resume();
        answer.once('close', () =>
          resolve({ status: answer.statusCode ?? 0, reused: (answer.socket as TLSSocket).isSessionReused() }),
        );
      },
    );
    going.once('error', reject);
    going.end(body);
  });
}

describe.skipIf(MISSING.length > 0)('the GASS server, asked by others,', () => {
  it('gives a job what it was given, to the user alone', async () => {
    await copy(grid.proxyFile, `${sent}/job`, `file://${grid.dir}/job`);
    expect(readFileSync(join(grid.dir, 'job'), 'utf8')).toContain('#!/bin/sh');
    const eve = join(grid.dir, 'eve.pem');
    const eves = await proxyFor(grid.ca.person('Eve Other'));
    saveProxy(eve, eves);
    await expect(copy(eve, `${sent}/job`, `file://${grid.dir}/stolen`)).rejects.toThrow(/DENIED|denied|Bad Request/i);
    expect((await ask(eves, 'GET', `${sent}/job`)).status).toBe(400);
    expect((await ask(undefined, 'GET', `${sent}/job`)).status).toBe(400);
    // Job managers authenticate with the proxy that was delegated to them.
    expect((await ask(await proxyFor(grid.jane, { rights: 'limited' }), 'GET', `${sent}/job`)).status).toBe(200);
  });

  it('gives nothing else, and takes nothing but the outputs', async () => {
    // A job that is not committed does not even get its program: it must not start.
    expect((await ask(grid.proxy, 'GET', `${base}/job`)).status).toBe(404);
    const other = sent.replace(/[0-9a-f]{32}$/, '0'.repeat(32));
    const statuses = await Promise.all(
      [`${other}/job`, `${base}/record.json`, `${base}/../../../gass.json`, `${base}/`, `${base}/err`].map((url) =>
        ask(grid.proxy, 'GET', url).then(({ status }) => status),
      ),
    );
    expect(statuses).toEqual([404, 404, 404, 404, 404]);
    expect((await ask(grid.proxy, 'PUT', `${base}/job`, 'evil')).status).toBe(403);
    expect((await ask(grid.proxy, 'PUT', `${base}/record.json`, 'evil')).status).toBe(403);
    expect((await ask(grid.proxy, 'DELETE', `${base}/err`)).status).toBe(405);
  });

  it('takes whole files, pieces at their place, and what is appended', async () => {
    mkdirSync(join(grid.dir, 'o'), { recursive: true });
    writeFileSync(join(grid.dir, 'o/put'), 'one\n');
    await copy(grid.proxyFile, `file://${grid.dir}/o/put`, `${base}/err`);
    expect(readFileSync(home('err'), 'utf8')).toBe('one\n');
    const path = new URL(base).pathname;
    const origin = new URL(base).origin;
    expect((await ask(grid.proxy, 'POST', `${origin}/globus-bins/GASSappend?${path}/err`, 'two\n')).status).toBe(200);
    expect(readFileSync(home('err'), 'utf8')).toBe('one\ntwo\n');
    await ask(grid.proxy, 'PUT', `${base}/live/stdout/0`, 'abc');
    await ask(grid.proxy, 'PUT', `${base}/live/stdout/3`, 'def');
    expect((await ask(grid.proxy, 'PUT', `${base}/live/stdout/100`, 'far')).status).toBe(500);
    await ask(grid.proxy, 'PUT', `${base}/live/stdout/0`, 'abc');
    expect(readFileSync(home('live.stdout'), 'utf8')).toBe('abcdef');
    // A request that is cut off in the middle changes nothing.
    const cut = ask(grid.proxy, 'PUT', `${base}/out`, 'short', { 'content-length': 100_000 }).catch(() => undefined);
    await Promise.race([cut, new Promise((resolve) => setTimeout(resolve, 300))]);
    expect(existsSync(home('out'))).toBe(false);
  });

  it('acknowledges a file, which the service then deletes, when it would outlast a power failure', async () => {
    const disk = await FlushedDisk.begin();
    try {
      expect((await ask(grid.proxy, 'PUT', `${base}/err`, 'all of it')).status).toBe(200);
      expect(disk.left(home('err'), dirname(home('err')))?.toString()).toBe('all of it');
    } finally {
      disk.end();
    }
  });

  it('lets no session be resumed, for that would have no chain', async () => {
    const said = [await ask(grid.proxy, 'GET', `${sent}/job`), await ask(grid.proxy, 'GET', `${sent}/job`)];
    expect(said).toEqual([
      { status: 200, reused: false },
      { status: 200, reused: false },
    ]);
  });

  it("and globusrun sees our job, as we see globusrun's", async () => {
    expect(await globus(grid.ca, grid.proxyFile, '/usr/bin/globusrun', '-status', contact)).toContain('UNSUBMITTED');
    const rsl = '&(executable=/bin/sleep)(arguments=600)';
    const said = await globus(
      grid.ca,
      grid.proxyFile,
      '/usr/bin/globusrun',
      '-b',
      '-r',
      `${grid.gate.address}/jobmanager-fork`,
      rsl,
    );
    const theirs = /https:\/\/\S+/.exec(said)?.[0] ?? '';
    const target = parseGramContact(`${grid.gate.address}/jobmanager-fork`);
    const client = new GramClient({ target, trust: () => openCaDirectory(grid.ca.trust), now: Date.now });
    await expect
      .poll(async () => (await client.query(grid.proxy, theirs, 'status'))?.fields.get('status'), { timeout: 20_000 })
      .toBe('2');
    expect((await client.query(grid.proxy, theirs, 'cancel'))?.fields.get('failure-code')).toBe('0');
    // A job of ours that globusrun ends was cancelled, and not by us.
    await new Watch(site).until(running, ({ is }) => is === 'running', 20_000);
    await globus(grid.ca, grid.proxyFile, '/usr/bin/globusrun', '-k', sentContact);
    expect(await new Watch(site).ended(running, 60_000)).toMatchObject({
      how: { kind: 'by-site', cause: 'cancelled' },
    });
  }, 120_000);
});
