import type { Duplex } from 'node:stream';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { DirectLink } from '../../src/pool/wire/direct-link.ts';
import { LATE_INPUTS } from '../../src/pool/wire/direct-wire.ts';
import { blobsOf } from '../../src/pool/wire/run-blobs.ts';
import { reach } from '../../src/reverse-connection/reach.ts';
import { greetHome } from '../../src/reverse-connection/secure.ts';
import { until } from '../agent/agent.ts';
import { JUST_TRUE } from '../pool/just-true.ts';
import { digest, InputEnds, KEY, KNOWS, large, OTHER } from './input-ends.ts';

let ends: InputEnds;
afterEach(() => ends.close());

const open = async (contents: Readonly<Record<string, readonly Buffer[]>>) =>
  (ends = await new InputEnds(contents).open());
const atGateway = () => readdirSync(join(ends.dir, 'lent/inputs/borrower'));
const times = (words: string) => ends.logged.filter((one) => one.includes(words)).length;

describe('large inputs of a borrowed job', () => {
  it('go from the borrower’s gateway to the worker itself; small ones come to the lender’s', async () => {
    const [one, two, small] = [large(), large(9), Buffer.from('small')];
    await open({ [KEY]: [one, small, two] });
    const { ad } = await ends.take(KEY);
    expect(atGateway()).toEqual([digest(small)]);
    expect(ad['Requirements']).toBe('TARGET.HasDirectInputs =?= true');
    await ends.run(KEY).staged;
    expect(ends.isWhole(KEY)).toBe(true);
    expect(readFileSync(join(ends.dir, 'work', KEY, 'in.2')).equals(two)).toBe(true);
    expect([ends.told.length, ends.asked, atGateway()]).toEqual([1, ['blob', 'inputs'], [digest(small)]]);
    await until('the end of the connection', () => ends.inputs.links === 0 || undefined);
    expect(times('go to its worker itself')).toBe(1);
    for (const { name, secret } of ends.told)
      for (const word of [name, secret]) expect(ends.logged.join()).not.toContain(word);
  });

  it('that several jobs need come to the lender’s gateway from the second job on, once', async () => {
    const shared = large();
    await open({ [KEY]: [shared], [OTHER]: [shared, large()] });
    await ends.take(KEY);
    expect(atGateway()).toEqual([]);
    const second = await ends.take(OTHER);
    expect(atGateway()).toEqual([digest(shared)]);
    expect(second.ad[LATE_INPUTS]).not.toContain(digest(shared));
    for (const key of [KEY, OTHER]) await ends.run(key).staged;
    expect([ends.isWhole(KEY), ends.isWhole(OTHER)]).toEqual([true, true]);
  });

  it.each<[string, () => void]>([
    ['the borrower’s gateway is of an earlier build', () => undefined],
    ['a worker is of an earlier build', () => (ends.machines = [KNOWS, { GryphusAsksGateway: 'true' }])],
    ['the central manager is of an earlier build', () => (ends.machines = [{ HasDirectInputs: 'true' }])],
    ['the agreement has no address', () => (ends.terms = { url: undefined })],
    ['the address is reached by ssh', () => (ends.terms = { via: 'me@there' })],
  ])('come by the gateways as before if %s', async (what, spoil) => {
    const one = large();
    await open({ [KEY]: [one] });
    spoil();
    const request = await (what.startsWith('the borrower') ? ends.take(KEY, {}) : ends.take(KEY));
    expect([request.ad, atGateway()]).toEqual([{ FlockFrom: '"borrower"' }, [digest(one)]]);
    await ends.run(KEY).staged;
    expect([ends.isWhole(KEY), ends.asked.includes('inputs')]).toEqual([true, false]);
  });

  it.each<[string, boolean, () => void]>([
    ['cannot dial', true, () => ends.port.close()],
    ['cannot dial, and is not on the agent’s machine', false, () => ends.port.close()],
    [
      'is refused',
      true,
      () => {
        const { answer } = ends;
        ends.answer = (asked) => (asked.what === 'inputs' ? Promise.reject(new Error('too many')) : answer(asked));
      },
    ],
    [
      'has another secret than was announced',
      true,
      () => {
        const { answer } = ends;
        ends.answer = (asked) => answer(asked.what === 'inputs' ? { ...asked, secret: 'cd'.repeat(32) } : asked);
      },
    ],
  ])('come by the gateways if the worker %s', async (_what, isLocal, spoil) => {
    const one = large();
    await open({ [KEY]: [one] });
    await ends.take(KEY);
    spoil();
    await ends.run(KEY, isLocal).staged;
    expect([ends.isWhole(KEY), atGateway(), times('came by the gateways')]).toEqual([true, [digest(one)], 1]);
  });

  it('go on by another connection where the line was cut', async () => {
    await open({ [KEY]: [large(8)] });
    await ends.take(KEY);
    ends.after(4 << 20, ends.cut);
    await ends.run(KEY).staged;
    expect([ends.isWhole(KEY), ends.told.length, atGateway()]).toEqual([true, 2, []]);
    // Only what was under way came twice.
    expect(ends.passed).toBeLessThan(13 << 20);
    expect(ends.told[0]?.secret).not.toBe(ends.told[1]?.secret);
  });

  it('go on by the gateways where the line was cut for good', async () => {
    await open({ [KEY]: [large(8)] });
    await ends.take(KEY);
    ends.after(4 << 20, () => {
      ends.port.close();
      ends.cut();
    });
    await ends.run(KEY).staged;
    expect([ends.isWhole(KEY), atGateway().length]).toEqual([true, 1]);
  });

  it('wait for a partner that is not connected', async () => {
    await open({ [KEY]: [large()] });
    await ends.take(KEY);
    ends.isUp = false;
    const { staged } = ends.run(KEY);
    await until('the first question', () => ends.asked.includes('blob') || undefined);
    ends.isUp = true;
    await staged;
    expect([ends.isWhole(KEY), ends.told.length]).toEqual([true, 1]);
  });

  it('are not waited for when the job is cancelled', async () => {
    await open({ [KEY]: [large()] });
    await ends.take(KEY);
    ends.isUp = false;
    const { run, staged } = ends.run(KEY);
    run.aborted = true;
    await staged;
    expect(ends.isWhole(KEY)).toBe(false);
  });

  it('are brought anew for a job whose input was on its way for one that was cancelled', async () => {
    // So large that it is not copied at once.
    const shared = large(9);
    await open({ [KEY]: [shared], [OTHER]: [shared] });
    for (const key of [KEY, OTHER]) await ends.take(key);
    const first = ends.run(KEY);
    const second = new Promise((resolve) =>
      ends.after(1 << 20, () => {
        resolve(ends.run(OTHER).staged);
        first.run.aborted = true;
        ends.cut();
      }),
    );
    await Promise.all([first.staged, second]);
    expect(ends.isWhole(OTHER)).toBe(true);
  });

  it('that are not what was announced start no job', async () => {
    await open({ [KEY]: [large()] });
    await ends.take(KEY);
    writeFileSync(join(ends.dir, 'home', KEY, 'in.0'), large());
    await expect(ends.run(KEY).staged).rejects.toMatchObject({ code: 'input-missing' });
  });
});

describe('whoever asks for inputs', () => {
  const NAME = `inputs.${'x'.repeat(16)}`;
  const SECRET = 'ab'.repeat(32);

  async function dial(name = NAME, secret = SECRET): Promise<Duplex> {
    const raw = await reach({ host: '127.0.0.1', port: ends.port.port }, 5000);
    return greetHome(raw, { worker: name, key: Buffer.from(secret, 'hex'), patienceMs: 5000 });
  }
  const shaOf = (key: typeof KEY) => blobsOf(ends.borrower.get(key)?.job.spec ?? JUST_TRUE)[0]?.sha256 ?? '';

  it('gets a connection only for a job that it has and that has not started', async () => {
    await open({ [KEY]: [large()] });
    const ask = (partner: string, key = KEY) => ends.inputs.open(partner, ends.question(key, NAME));
    expect(() => ask('somebody')).toThrow(/no such job/);
    expect(() => ask('lender', 'ours.9.0.1')).toThrow(/no such job/);
    ask('lender');
    expect(() => ask('lender')).toThrow(/too many/);
    const [one] = ends.borrower.jobs;
    if (one) one.startedAt = 1;
    ends.inputs.tick();
    expect([ends.inputs.links, ends.inputs.keyOf(NAME)]).toEqual([0, undefined]);
    expect(() => ask('lender')).toThrow(/no such job/);
  });

  it('uses a key once, and none while nothing is said to its pool', async () => {
    await open({ [KEY]: [large()] });
    ends.inputs.open('lender', ends.question(KEY, NAME));
    await expect(dial(NAME, 'cd'.repeat(32))).rejects.toThrow(/did not know our token/);
    ends.isUp = false;
    await expect(dial()).rejects.toThrow(/did not know our token/);
    ends.isUp = true;
    const link = new DirectLink(await dial());
    await expect(dial()).rejects.toThrow(/did not know our token/);
    link.close('the test ends');
  });

  it('is cut off with the agreement', async () => {
    await open({ [KEY]: [large()] });
    ends.inputs.open('lender', ends.question(KEY, NAME));
    const link = new DirectLink(await dial());
    const waiting = `inputs.${'y'.repeat(16)}`;
    ends.inputs.open('lender', ends.question(KEY, waiting));
    ends.inputs.end('another');
    expect(ends.inputs.links).toBe(2);
    ends.inputs.end('lender');
    expect([ends.inputs.links, ends.inputs.keyOf(waiting)]).toEqual([0, undefined]);
    await until('the end of the connection', () => link.isOver || undefined);
  });

  it('gets bytes of that job’s inputs, no more than there are, and nothing when the job is over', async () => {
    await open({ [KEY]: [large(2)], [OTHER]: [large(2)] });
    ends.inputs.open('lender', ends.question(KEY, NAME));
    const link = new DirectLink(await dial());
    const ask = (sha256: string, offset = 0, bytes = 1 << 20) => link.ask({ t: 'input', sha256, offset, bytes });
    expect((await ask(shaOf(KEY), 1 << 20)).bytes).toHaveLength(1 << 20);
    for (const name of [shaOf(OTHER), '../../etc/passwd', ''])
      await expect(ask(name, 0, 1000)).rejects.toThrow(/not an input of this job/);
    await ask(shaOf(KEY));
    await ask(shaOf(KEY));
    await expect(ask(shaOf(KEY))).rejects.toThrow(/more than there is/);
    ends.borrower.forget([KEY]);
    await expect(ask(shaOf(OTHER), 0, 1)).rejects.toThrow(/not needed any more/);
    ends.inputs.tick();
    await until('the end of the connection', () => link.isOver || undefined);
  });

  it('is not answered by a gateway for a job that is not a partner’s, or has ended', async () => {
    await open({ [KEY]: [large()] });
    await ends.take(KEY);
    const ask = { op: 'partner_inputs', words: [], numbers: [], session: 's', n: 1, again: false } as const;
    const lent = ends.lent.get(KEY);
    expect(await ends.lending.answer(OTHER, ask)).toEqual({ result: -2 });
    expect(await ends.lending.answer(KEY, { ...ask, op: 'stat' })).toEqual({ result: -2 });
    if (lent) lent.phase = 'gone';
    expect(await ends.lending.answer(KEY, ask)).toEqual({ result: -2 });
    expect(ends.asked).toEqual([]);
  });
});
