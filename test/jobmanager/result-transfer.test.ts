import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { asError } from '../../src/errors.ts';
import { openJobManagerSite } from '../../src/jobmanager/client.ts';
import type { Sending } from '../../src/site/contract.ts';
import type { TransferOptions } from '../../src/transport/contract.ts';
import { LocalTransport } from '../../src/transport/local.ts';
import { deferred } from '../../src/util/deferred.ts';
import { AGENT, freshKey, remove, scratchDir, shellJob, texts, Watch } from '../conformance/kit.ts';

/** Large files leave the site only when they are allowed to. */
class Slow extends LocalTransport {
  readonly asked: string[] = [];
  readonly gate = deferred<undefined>();
  failing: Error | undefined;
  override async get(from: string, to: string, options: TransferOptions = {}): Promise<void> {
    this.asked.push(from);
    const { promise: aborted, resolve: abort } = deferred<undefined>();
    options.signal?.addEventListener('abort', () => abort(undefined));
    await Promise.race([this.gate.promise, aborted]);
    options.signal?.throwIfAborted();
    if (this.failing) throw this.failing;
    await super.get(from, to, options);
  }
}

let home: string;
let slow: Slow;
let told: (readonly Sending[])[];
let site: ReturnType<typeof openJobManagerSite>;
beforeEach(() => {
  home = scratchDir();
  slow = new Slow(home);
  told = [];
  site = openJobManagerSite({
    name: 'here',
    agentId: AGENT,
    transport: slow,
    backend: 'fork',
    options: { scratch: join(home, '.gryphus'), resultsPatience: 0, onComing: (all) => told.push(all) },
  });
});
afterEach(async () => {
  await site.close();
  remove(home);
});

const LARGE = 'head -c 300000 /dev/zero >big; echo small >little';

async function ended(script: string) {
  const key = freshKey();
  await site.prepare([shellJob(key, script)]);
  await site.commit([key]);
  await new Watch(site).until(key, (report) => report.is === 'ended', 20_000);
  const into = join(home, `into-${key}`);
  mkdirSync(into);
  return { key, outputs: 'new' as const, stdout: true, stderr: false, into };
}

it('a large result is on its way while others come home and the site is asked', { timeout: 60_000 }, async () => {
  const large = await ended(LARGE);
  const other = await ended('echo hello >there');
  const outcomes = await site.fetch([large, other]);
  expect(texts(outcomes.get(other.key))).toMatchObject({ there: 'hello\n' });
  expect(outcomes.get(large.key)).toMatchObject({ ok: false, refusal: { kind: 'later', code: 'arriving' } });
  expect((await site.poll({ cursor: undefined, follow: [] })).complete).toBe(true);
  // Requested again, it does not arrive twice.
  expect((await site.fetch([large])).get(large.key)).toMatchObject({ refusal: { code: 'arriving' } });
  slow.gate.resolve(undefined);
  const whole = await vi.waitFor(async () => {
    const outcome = (await site.fetch([large])).get(large.key);
    expect(outcome?.ok).toBe(true);
    return outcome;
  }, 20_000);
  expect(whole?.ok && Object.fromEntries(whole.files.map(({ name, bytes }) => [name, bytes]))).toEqual({
    big: 300_000,
    little: 6,
    stdout: 0,
  });
  expect(readFileSync(join(large.into, 'big'))).toHaveLength(300_000);
  expect(slow.asked).toHaveLength(1);
  expect(told.flat()).toContainEqual(expect.objectContaining({ bytes: 300_000 }));
  expect(told.at(-1)).toEqual([]);
});

it('an attempt that is forgotten on its way home leaves nothing that writes', {
  timeout: 60_000,
}, async () => {
  const large = await ended(LARGE);
  await site.fetch([large]);
  await vi.waitFor(() => expect(slow.asked).toHaveLength(1));
  await site.forget([large.key]);
  slow.gate.resolve(undefined);
  expect((await site.fetch([large])).get(large.key)).toMatchObject({ ok: false, refusal: { kind: 'gone' } });
});

it('a failure is reported to the next caller, and then the transfer is retried', { timeout: 60_000 }, async () => {
  const large = await ended(LARGE);
  slow.failing = new Error('the line is down');
  slow.gate.resolve(undefined);
  const failure = await vi.waitFor(async () => {
    const thrown = await site.fetch([large]).then(() => undefined, asError);
    expect(thrown).toBeDefined();
    return thrown;
  }, 20_000);
  expect(failure?.message).toBe('the line is down');
  slow.failing = undefined;
  await vi.waitFor(async () => expect((await site.fetch([large])).get(large.key)?.ok).toBe(true), 20_000);
});
