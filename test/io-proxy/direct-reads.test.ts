import type { Duplex } from 'node:stream';
import { afterEach, expect, it } from 'vitest';
import { DirectReads } from '../../src/io-proxy/direct-reads.ts';
import { remoteAnswer } from '../../src/io-proxy/remote-frames.ts';
import { until } from '../agent/agent.ts';
import { socketPair } from '../reverse-connection/pair.ts';

const MB = 1 << 20;
const REQUEST = [Buffer.from('a request')];
let ends: Duplex[] = [];
afterEach(() => {
  for (const end of ends) end.destroy();
  ends = [];
});

/** A session of a job whose home answers as `home` says. */
function session(home: (far: Duplex) => void) {
  const written: Uint8Array[] = [];
  let dialled = 0;
  const direct = new DirectReads(async () => {
    dialled++;
    const [near, far] = await socketPair();
    ends.push(near, far);
    far.on('error', () => undefined);
    home(far);
    return near;
  });
  const one = direct.session(async (pieces) => void written.push(...pieces));
  return { direct, ...one, dials: () => dialled, written: () => Buffer.concat(written) };
}
/** Reads until the connection is there. */
async function warm({ read }: ReturnType<typeof session>): Promise<void> {
  await until('a direct answer', async () => (await read(REQUEST, 5 * MB)) || undefined);
}

it('is tried only by a job that reads much', async () => {
  const job = session((far) => far.on('data', () => far.write(Buffer.concat(remoteAnswer(5, Buffer.from('bytes'))))));
  for (let i = 0; i < 3; i++) expect(await job.read(REQUEST, MB)).toBe(false);
  expect(job.dials()).toBe(0);
  await warm(job);
  expect(job.dials()).toBe(1);
  expect(job.written().equals(Buffer.concat(remoteAnswer(5, Buffer.from('bytes'))))).toBe(true);
});

it('passes answers on as they are, one after another, with and without bytes', async () => {
  const long = Buffer.alloc(3 * MB, 'x');
  const answers = [remoteAnswer(-2, Buffer.alloc(0)), remoteAnswer(9, long), remoteAnswer(0, Buffer.from('end'))];
  let n = 0;
  const job = session((far) => far.on('data', () => far.write(Buffer.concat(answers[n++] ?? []))));
  await warm(job);
  expect(await job.read(REQUEST, 1)).toBe(true);
  expect(await job.read(REQUEST, 1)).toBe(true);
  expect(job.written().equals(Buffer.concat(answers.flat()))).toBe(true);
});

it('leaves a read to the other way if its connection ended before an answer began, and rests', async () => {
  const job = session((far) => far.on('data', () => far.destroy()));
  await until('it to be tried', async () => {
    expect(await job.read(REQUEST, 5 * MB)).toBe(false);
    return ends.length > 0 && ends.every((end) => end.destroyed) ? true : undefined;
  });
  for (let i = 0; i < 5; i++) expect(await job.read(REQUEST, 5 * MB)).toBe(false);
  expect(job.dials()).toBe(1);
  expect(job.written()).toHaveLength(0);
});

it('rejects if an answer was cut off, by home or because home is out of reach', async () => {
  const half = Buffer.concat(remoteAnswer(9, Buffer.alloc(MB))).subarray(0, 1000);
  let isWhole = true;
  const home = (far: Duplex) =>
    far.on('data', () => far.write(isWhole ? Buffer.concat(remoteAnswer(0, Buffer.alloc(0))) : half));
  const job = session(home);
  await warm(job);
  isWhole = false;
  const cut = job.read(REQUEST, 1);
  await until('half of it', () => job.written().length >= 1000 || undefined);
  job.direct.cut();
  await expect(cut).rejects.toThrow('cut off');
});

it('ends its connection with the session, also one that comes too late', async () => {
  const job = session(() => undefined);
  expect(await job.read(REQUEST, 5 * MB)).toBe(false);
  job.end();
  await until('its end', () => (ends.length > 0 && ends[0]?.destroyed) || undefined);
});
