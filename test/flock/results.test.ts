import { describe, expect, it } from 'vitest';
import { type Agreement, AGREEMENT_KEYS } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import type { Borrowed } from '../../src/flock/borrowed-journal.ts';
import { refusalOf, results, type ResultsOptions } from '../../src/flock/results.ts';

const KEY = 'ours.1.0.1';
const agreement: Agreement = { ...presets(AGREEMENT_KEYS), name: 'p', keyFile: '/k', to: true, max_result: 100 };

/** A job that left one file at a partner, and what was written down and asked for meanwhile. */
function ended(stdoutBytes: number, fileBytes: number) {
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
        ask: async (question) => {
          asked.push(question.what);
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

  it('that the partner cannot give now are asked for again', () => {
    expect(refusalOf(1, new Error('the partner is not connected'))).toEqual({
      t: 'answer',
      id: 1,
      ok: false,
      message: 'the partner is not connected',
    });
  });
});
