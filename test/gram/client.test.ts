import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseGramContact } from '../../src/config/gram-resource.ts';
import { makeProxy } from '../../src/credentials/delegation.ts';
import { loadUser } from '../../src/credentials/store.ts';
import { openCaDirectory } from '../../src/credentials/x509/ca-directory.ts';
import type { Credential } from '../../src/credentials/x509/proxy-file.ts';
import { GramClient } from '../../src/gram/client.ts';
import { numberOf, STATE } from '../../src/gram/protocol.ts';
import { type Gatekeeper, missingPrograms, startGatekeeper } from '../sites/gatekeeper.ts';
import { type GridCa, makeGridCa, type Person } from '../sites/grid-ca.ts';
import { waitUntil } from '../sites/ports.ts';

const MISSING = missingPrograms();
let ca: GridCa;
let jane: Person;
let gate: Gatekeeper;
let proxy: Credential;
const dir = mkdtempSync(join(tmpdir(), 'gram-'));
const now = () => Math.floor(Date.now() / 1000);

beforeAll(async () => {
  if (MISSING.length > 0) return;
  ca = makeGridCa();
  jane = ca.person('Jane User');
  gate = await startGatekeeper(ca, [jane]);
  proxy = await makeProxy(await loadUser(jane.cert, jane.key), { now: now(), lifetime: 3600 });
}, 60_000);
afterAll(async () => {
  await gate?.stop();
  ca?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const client = (contact = `${gate.address}/jobmanager-fork`) =>
  new GramClient({ target: parseGramContact(contact), trust: () => openCaDirectory(ca.trust), now: Date.now });
describe.skipIf(MISSING.length > 0)('GRAM2 with the real gatekeeper', () => {
  it('says that it lets us in, and its version', async () => {
    expect(await client().ping(proxy)).toBe('127.0.0.1');
    expect(await client().version(proxy)).toMatch(/^\d+\.\d+/);
  });

  it('starts a job at the commit, reports it, and forgets it at the end', async () => {
    const gram = client();
    const rsl = '&(executable=/bin/echo)(arguments=hello)(save_state=yes)(two_phase=60)';
    const asked = await gram.request(proxy, rsl, '');
    if (!asked.ok) throw new Error(asked.message);
    const state = async () =>
      numberOf((await gram.query(proxy, asked.contact, 'status')) ?? { http: 0, fields: new Map() }, 'status');
    expect(await state()).toBe(STATE.unsubmitted);
    expect(numberOf((await gram.signal(proxy, asked.contact, 'commitRequest'))!, 'failure-code')).toBe(0);
    expect((await gram.renew(proxy, asked.contact))?.http).toBe(200);
    await waitUntil('the job to end', async () => (await state()) === STATE.done);
    expect(gate.stateFiles().filter((file) => !file.endsWith('.lock')).length).toBeGreaterThan(0);

    await gram.signal(proxy, asked.contact, 'commitEnd');
    await waitUntil('the contact to go', async () => {
      const answer = await gram.query(proxy, asked.contact, 'status');
      return answer === undefined || numberOf(answer, 'failure-code') === 156;
    });
  }, 60_000);
});
