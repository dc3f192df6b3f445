import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LocalTransport } from '../../src/transport/local.ts';
import { ShellFiles } from '../../src/transport/shell-files.ts';
import { deferred } from '../../src/util/deferred.ts';
import { until } from '../agent/agent.ts';

const TOTAL = 300_000;

describe("a file written by the site's shell", () => {
  let dir: string;
  let path: string;
  const files = new ShellFiles('here', new LocalTransport());
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'gryphus shell files '));
    path = join(dir, "it's a part");
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  const size = (at: number) =>
    until(`${at} bytes`, () => statSync(path, { throwIfNoEntry: false })?.size === at || undefined);

  /** A writer that was cut: the connection has ended, but not yet what it started there. */
  function cut(bytes: Buffer, before: number, after: number) {
    const go = deferred<void>();
    async function* parts() {
      yield bytes.subarray(0, before);
      await go.promise;
      yield bytes.subarray(before, after);
    }
    return { go: () => go.resolve(), done: files.write(path, 0, parts(), TOTAL).catch(() => undefined) };
  }

  it('is whole though what wrote before writes on after its size was measured', async () => {
    const bytes = randomBytes(TOTAL);
    const former = cut(bytes, 200_000, 250_000);
    await size(200_000);
    async function* rest() {
      former.go();
      await size(250_000);
      yield bytes.subarray(200_000);
    }
    await files.write(path, 200_000, rest(), TOTAL);
    await former.done;
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });

  it('is not harmed by what wrote another content before', async () => {
    const former = cut(randomBytes(TOTAL), 200_000, 250_000);
    await size(200_000);
    const bytes = randomBytes(TOTAL);
    async function* all() {
      yield bytes;
    }
    await files.write(path, 0, all(), TOTAL);
    former.go();
    await former.done;
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });
});
