import { describe, expect, it } from 'vitest';
import { type Agreement, AGREEMENT_KEYS } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import { GryphusError } from '../../src/errors.ts';
import type { Hop } from '../../src/flock/flock-wire.ts';
import type { Borrowed } from '../../src/flock/borrowed-journal.ts';
import { refusalOf, results, type ResultsOptions } from '../../src/flock/results.ts';

const KEY = 'ours.1.0.1';
const agreement: Agreement = { ...presets(AGREEMENT_KEYS), name: 'p', keyFile: '/k', to: true, max_result: 100 };

/** A job that left one file at a partner, and what was written down and asked for meanwhile. */
function ended(
  stdoutBytes: number,
  fileBytes: number,
  { to = [] as readonly Hop[], fault = undefined as Error | undefined } = {},
) {
  const refused: string[] = [];
  const asked: string[] = [];
  const borrowed: Borrowed = {
    job: {
      key: KEY,
      partner: 'p',
      worker: 'p',
      round: 1,
      user: 'u',
      ad: {},
      size: { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 },
      lease: 600,
      ...(to.length > 0 ? { to: [...to] } : {}),
      spec: { executable: { kind: 'there', path: '/bin/true' }, args: [], env: {}, inputs: [], joinStderr: false },
    },
    phase: 'ended',
    ending: { how: { kind: 'exited', code: 0 }, stdoutBytes },
  };
  const options: ResultsOptions = {
    borrowed,
    state: {
      name: 'p',
      partner: { agreement, key: { id: 'abcdefgh', key: 'ab'.repeat(32) } },
      strike: () => undefined,
      refused: (by, { clause }) => void refused.push(`${by} ${clause}`),
      direct: {
        ask: async (question, isNear) => {
          asked.push(isNear === false ? `${question.what} by the gateways` : question.what);
          if (fault) throw fault;
          const files = [{ name: 'out', bytes: fileBytes, executable: false }];
          return { t: 'answer', id: 1, ok: true, files, bytes: Buffer.from('abc') };
        },
      },
    },
    log: () => undefined,
  };
  return { options, refused, asked };
}

const FILES = { t: 'ask', id: 7, what: 'files', key: KEY, outputs: 'new', digests: true } as const;
const READ = { t: 'ask', id: 8, what: 'read', key: KEY, path: 'stdout', offset: 0, bytes: 3 } as const;

describe('results of a job at a partner', () => {
  it('come home if they are no larger than max_result', async () => {
    const { options, refused } = ended(40, 60);
    expect((await results(FILES, options)).answer).toMatchObject({ ok: true, files: [{ name: 'out', bytes: 60 }] });
    expect((await results(READ, options)).bytes).toEqual(Buffer.from('abc'));
    expect(refused).toEqual([]);
  });

  it.each([
    ['files', FILES, 40, 61],
    ['streams, before anything of them is fetched,', READ, 101, 0],
  ] as const)('with larger %s are refused for good, with a sentence', async (what, ask, stdoutBytes, fileBytes) => {
    const { options, refused, asked } = ended(stdoutBytes, fileBytes);
    const thrown = await results(ask, options).catch((error: unknown) => error);
    const bytes = stdoutBytes + fileBytes;
    expect(refusalOf(ask.id, thrown)).toMatchObject({
      ok: false,
      refused: true,
      message: expect.stringMatching(`take ${bytes} bytes, more than max_result .*flock/p.toml and release the job`),
    });
    expect(refused).toEqual(['us max_result']);
    expect(asked).toEqual(what === 'files' ? ['files'] : []);
  });

  const beyond = [{ agent: 'c', name: 'c' }];
  it('of a job that was passed on come by the gateways', async () => {
    const { options, asked } = ended(1, 1, { to: beyond });
    await results(FILES, options);
    await results(READ, options);
    expect(asked).toEqual(['files by the gateways', 'read by the gateways']);
  });

  it('that a pool between does not bring are refused for good, which a partner cannot say of its own', async () => {
    const fault = new GryphusError('site-refused', 'too much');
    const refusal = async (to: readonly Hop[]) =>
      refusalOf(7, await results(FILES, ended(1, 1, { to, fault }).options).catch((error: unknown) => error));
    expect(await refusal(beyond)).toMatchObject({ refused: true, message: 'partner p: too much' });
    expect(await refusal([])).not.toHaveProperty('refused');
  });

  it('that the partner cannot give now are asked for again', () => {
    expect(refusalOf(1, new Error('the partner is not connected'))).toEqual({
      t: 'answer',
      id: 1,
      ok: false,
      message: 'the partner is not connected',
    });
  });
});
