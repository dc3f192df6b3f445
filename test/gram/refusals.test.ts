import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseGramContact } from '../../src/config/gram-resource.ts';
import { openCaDirectory } from '../../src/credentials/x509/ca-directory.ts';
import type { Credential } from '../../src/credentials/x509/proxy-file.ts';
import { verifyChain } from '../../src/credentials/x509/verify.ts';
import { GramClient, identityOf } from '../../src/gram/client.ts';
import { missingPrograms } from '../sites/gatekeeper.ts';
import { makeGridCa } from '../sites/grid-ca.ts';
import { freePort } from '../sites/ports.ts';
import { freshKey, shellJob } from '../conformance/kit.ts';
import { type Manner, openFrontDoor } from './front-door.ts';
import { type Grid, proxyFor, seconds, startGrid } from './kit.ts';

const MISSING = missingPrograms();
let grid: Grid;
beforeAll(async () => {
  if (MISSING.length === 0) grid = await startGrid();
}, 60_000);
afterAll(() => grid?.stop(), 60_000);

const client = (contact: string, timeoutMs = 20_000) =>
  new GramClient({
    target: parseGramContact(contact),
    trust: () => openCaDirectory(grid.ca.trust),
    now: Date.now,
    timeoutMs,
  });
const fork = () => `${grid.gate.address}/jobmanager-fork`;
const failure = async (made: Promise<unknown>) => {
  const thrown: unknown = await made.then(
    () => undefined,
    (error: unknown) => error,
  );
  return thrown as { code: string; message: string; suggestions: string[] };
};

describe.skipIf(MISSING.length > 0)('the real gatekeeper refuses, in one sentence,', () => {
  it('an unauthorized user, a limited proxy, an expired one, and one of an unknown authority', async () => {
    const eve = await proxyFor(grid.ca.person('Eve Other'));
    const limited = await proxyFor(grid.jane, { rights: 'limited' });
    const ended = await proxyFor(grid.jane, { now: seconds() - 240, lifetime: 180 });
    const other = makeGridCa({ name: 'Another CA' });
    const unknown = await proxyFor(other.person('Jane User'));
    other.stop();
    const ping = (credential: Credential) => failure(client(fork()).ping(credential));
    expect(await ping(eve)).toMatchObject({ code: 'login-refused' });
    expect(await ping(limited)).toMatchObject({ code: 'login-refused', message: expect.stringContaining('limited') });
    expect(await ping(ended)).toMatchObject({ code: 'credential-expired' });
    expect(await ping(unknown)).toMatchObject({ code: 'credential-invalid' });
  });

  it('an unknown service and a bad RSL, without waiting', async () => {
    expect(await failure(client(fork().replace('fork', 'nosuch')).ping(grid.proxy))).toMatchObject({
      code: 'site-refused',
      message: expect.stringContaining('jobmanager-nosuch'),
    });
    const asked = await client(fork()).request(grid.proxy, '&(executable=/bin/true', '');
    expect(asked).toMatchObject({ ok: false, code: 48 });
    expect(await failure(client(`localhost:${await freePort()}/jobmanager`).ping(grid.proxy))).toMatchObject({
      code: 'site-unreachable',
    });
  });

  it('and a gatekeeper that is not the one that was meant is not spoken with', async () => {
    const address = `127.0.0.1:${grid.gate.port}/jobmanager-fork`;
    expect(await failure(client(address).ping(grid.proxy))).toMatchObject({ code: 'host-key-changed' });
    expect(await client(`${address}:${grid.gate.host.dn}`).ping(grid.proxy)).toBe('127.0.0.1');
    const wrong = `${fork()}:/O=Grid/CN=somebody else`;
    expect((await failure(client(wrong).ping(grid.proxy))).message).toContain('and not /O=Grid/CN=somebody else');
  });

  it('as what a job is held with', async () => {
    const site = await grid.open({ state: 'held', credential: await proxyFor(grid.jane, { rights: 'limited' }) });
    const key = freshKey();
    expect((await site.prepare([shellJob(key, 'exit 0')])).get(key)).toMatchObject({
      ok: false,
      refusal: { kind: 'never', code: 'site-refused', message: expect.stringContaining('limited') },
    });
    const bare = freshKey();
    const none = await grid.open({ state: 'held too' });
    expect(
      (await none.prepare([{ ...shellJob(bare, 'exit 0'), batch: { extraArgs: ['(nonsense'] } }])).get(bare),
    ).toMatchObject({
      ok: false,
      refusal: { kind: 'never', message: expect.stringContaining('RSL') },
    });
  }, 60_000);
});

describe.skipIf(MISSING.length > 0)('a gatekeeper that answers', () => {
  it.each([
    ['half', 'protocol-error'],
    ['nothing', 'protocol-error'],
    ['garbage', 'protocol-error'],
    ['endless', 'protocol-error'],
    ['another status', 'protocol-error'],
    ['no attributes', 'protocol-error'],
    ['no contact', 'protocol-error'],
    ['no URL', 'protocol-error'],
    ['silence', 'timeout'],
  ] as const)('%s is asked again later', async (manner, code) => {
    const { error, taken } = await ask(manner);
    expect(error).toMatchObject({ code, retry: 'later' });
    // It was given a limited proxy of ours, which any verifier accepts.
    const [given] = taken;
    if (!given) throw new Error('nothing was delegated');
    expect(verifyChain(given.chain, openCaDirectory(grid.ca.trust), { now: seconds() })).toMatchObject({
      ok: true,
      limited: true,
      identity: identityOf(grid.proxy),
    });
  });

  it.each([
    ['leaves', 'site-unreachable'],
    ['no TLS', 'protocol-error'],
    ['leaves in TLS', 'site-unreachable'],
    ['stalls', 'timeout'],
  ] as const)('%s is asked again later, and is given nothing', async (manner, code) => {
    const { error, taken } = await ask(manner);
    expect(error).toMatchObject({ code, retry: 'later' });
    expect(taken).toEqual([]);
  });

  it('with a request for a proxy that is none, is refused', async () => {
    expect(await ask('bad request')).toMatchObject({
      error: { code: 'credential-invalid', retry: 'never' },
      taken: [],
    });
  });

  async function ask(manner: Manner): Promise<{ error: unknown; taken: readonly Credential[] }> {
    const door = await openFrontDoor(grid.gate, manner);
    // On a busy machine, what arrives takes its time, too.
    const patience = { silence: 10_000, stalls: 3000 }[manner as string] ?? 30_000;
    const error = await failure(
      client(`${door.address}/jobmanager`, patience).request(grid.proxy, '&(executable=/bin/true)', ''),
    );
    door.close();
    return { error, taken: door.taken };
  }
});
