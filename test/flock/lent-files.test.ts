import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LentFiles } from '../../src/flock/lent-files.ts';
import type { RunSpec } from '../../src/pool/wire/wire.ts';
import { JUST_TRUE } from '../pool/just-true.ts';

describe('inputs of a partner’s job', () => {
  let dir = '';
  let files: LentFiles;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'lent-'));
    files = new LentFiles(dir, () => Promise.reject(new Error('nothing is fetched')));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
  function asked(contents: readonly Buffer[]) {
    const inputs = contents.map((bytes, n) => {
      const blob = { sha256: digest(bytes), bytes: bytes.length, path: '' };
      return { kind: 'file' as const, name: `in.${n}`, file: { kind: 'blob' as const, blob }, executable: false };
    });
    const spec: RunSpec = { ...JUST_TRUE, inputs };
    const size = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };
    return { key: 'theirs.1.0.1' as const, owner: 'u@p', ad: {}, size, lease: 600, prio: 0, spec };
  }

  it('come whole, with many pieces under way, since each takes a round trip', async () => {
    const contents = [...Array.from({ length: 40 }, () => randomBytes(1000)), randomBytes(20 << 20)];
    const byDigest = new Map(contents.map((bytes) => [digest(bytes), bytes]));
    let [under, most] = [0, 0];
    await files.bring('p', asked(contents), async ({ sha256, offset, bytes }) => {
      most = Math.max(most, ++under);
      await delay(5);
      under -= 1;
      return byDigest.get(sha256)?.subarray(offset, offset + bytes) ?? Buffer.alloc(0);
    });
    expect(most).toBeGreaterThanOrEqual(8);
    const at = join(dir, 'inputs', 'p');
    expect(readdirSync(at)).toHaveLength(41);
    for (const [sha256, bytes] of byDigest) expect(readFileSync(join(at, sha256)).equals(bytes)).toBe(true);
  });

  it.each([
    ['another content', (bytes: Buffer) => Buffer.alloc(bytes.length), 'an input has another content'],
    ['more', (bytes: Buffer) => Buffer.concat([bytes, bytes]), 'an input has another size'],
    ['nothing', () => Buffer.alloc(0), 'an input has another'],
  ])('are refused with %s than was announced', async (_, changed, message) => {
    const bytes = randomBytes(3000);
    const coming = files.bring('p', asked([bytes]), () => Promise.resolve(changed(bytes)));
    await expect(coming).rejects.toThrow(message);
    expect(readdirSync(join(dir, 'inputs', 'p')).filter((name) => !name.endsWith('.part'))).toEqual([]);
  });
});
