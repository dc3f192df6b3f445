import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { boundedText, UnreadableText } from '../../src/util/bounded-text.ts';

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'gbt-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe('a text of a file', () => {
  it('is read whole up to the limit', () => {
    const path = join(dir, 'a');
    writeFileSync(path, 'ü'.repeat(1_000_000));
    expect(boundedText(path, 2_000_000)).toBe('ü'.repeat(1_000_000));
    expect(() => boundedText(path, 1_999_999)).toThrow(new UnreadableText(`${path} is larger than 1 MB, or endless`));
    expect(boundedText('/proc/self/stat', 1000)).toMatch(/^\d+ /);
  });

  it('that is not there or no file is the error of the system', () => {
    expect(() => boundedText(join(dir, 'none'), 10)).toThrow(expect.objectContaining({ code: 'ENOENT' }));
    expect(() => boundedText(dir, 10)).toThrow(expect.objectContaining({ code: 'EISDIR' }));
  });

  it('without an end is not read for ever', () => {
    expect(() => boundedText('/dev/zero', 2 ** 21)).toThrow('/dev/zero is larger than 2 MB, or endless');
    const fifo = join(dir, 'fifo');
    execFileSync('mkfifo', [fifo]);
    expect(() => boundedText(fifo, 10, 100)).toThrow(`${fifo} is not a regular file, and did not end within 1 s`);
    expect(boundedText('/dev/null', 10)).toBe('');
  });

  it('is what comes out of a FIFO', () => {
    const fifo = join(dir, 'fifo2');
    const give = 'mkfifo "$1"; (printf one; sleep 0.1; printf two) >"$1" &';
    execFileSync('sh', ['-c', give, 'sh', fifo], { stdio: 'ignore' });
    expect(boundedText(fifo, 10, 20_000)).toBe('onetwo');
  });
});
