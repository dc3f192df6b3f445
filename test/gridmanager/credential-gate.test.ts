import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { LOCAL_SITE } from '../../src/config/sites.ts';
import { CredentialGate } from '../../src/gridmanager/credential-gate.ts';
import { Attrs } from '../../src/job/attrs.ts';
import type { JobRecord } from '../../src/queue/api.ts';

const dir = mkdtempSync('/tmp/gcg-');
const file = join(dir, 'key');
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const site = { ...LOCAL_SITE, name: 's', credential: 'daily' };
const job: JobRecord = {
  id: { cluster: 1, proc: 0 },
  state: 'idle',
  manager: 'u',
  site: 's',
  attempt: 0,
  priority: 0,
  since: 0,
  attrs: new Attrs({}),
};

/** A gate with its own clock, in seconds; the key was written at 1,000,000 and lives for 1000. */
function gateAt(clock: { now: number }, bad: ReadonlyMap<string, string> = new Map()) {
  writeFileSync(file, 'x', { mode: 0o600 });
  utimesSync(file, 1_000_000, 1_000_000);
  const good =
    bad.size > 0 ? new Map() : new Map([['daily', { name: 'daily', kind: 'ssh-key', file, lifetime: 1000 } as const]]);
  return new CredentialGate({
    load: async () => ({ good, bad }),
    limits: { holdBefore: 60, skew: 300 },
    now: () => clock.now * 1000,
  });
}

describe('the gate before a site', () => {
  it.each([
    ['new', 1_000_000, 'good'],
    ['a second before the gate closes', 1_000_939, 'good'],
    ['closed before the end', 1_000_940, 'ended'],
    ['over', 1_001_000, 'ended'],
    ['of a clock that is far ahead', 999_699, 'early'],
  ])('is asked with a key that is %s', async (_, now, is) => {
    expect((await gateAt({ now }).look(job, site)).usability.is).toBe(is);
  });

  it('sees within a second that the key is another, or gone', async () => {
    const clock = { now: 1_002_000 };
    const gate = gateAt(clock);
    expect((await gate.look(job, site)).usability.is).toBe('ended');
    utimesSync(file, 1_001_990, 1_001_990);
    clock.now += 1;
    expect((await gate.look(job, site)).usability.is).toBe('good');
    rmSync(file);
    clock.now += 1;
    expect((await gate.look(job, site)).usability.is).toBe('unusable');
  });

  it('admits no job whose credential has a bad description, or none; and every job that needs none', async () => {
    const bad = gateAt({ now: 0 }, new Map([['daily', 'line 3: no.']]));
    expect((await bad.look(job, site)).usability).toMatchObject({
      is: 'unusable',
      why: expect.stringContaining('line 3'),
    });
    expect((await bad.look(job, { ...site, credential: 'other' })).usability.is).toBe('unusable');
    expect((await bad.look(job, { ...site, credential: undefined })).usability.is).toBe('good');
  });
});
