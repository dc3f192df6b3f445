import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { listenAt } from '../../src/util/listen-at.ts';
import { socketAnswers } from '../../src/util/socket-answers.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'listen-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

it("is its owner's alone, takes the place of a dead one, and leaves nothing", async () => {
  const path = join(dir, 's');
  await listenAt(createServer(), path);
  const end = await listenAt(createServer(), path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(dir)).toEqual(['s']);
  expect(await socketAnswers(path)).toBe(true);
  end();
  expect(existsSync(path)).toBe(false);
});

it('leaves the socket of a successor in a directory that was replaced', async () => {
  const path = join(dir, 'state', 's');
  mkdirSync(join(dir, 'state'));
  const end = await listenAt(createServer(), path);
  renameSync(join(dir, 'state'), join(dir, 'old'));
  mkdirSync(join(dir, 'state'));
  const endNext = await listenAt(createServer(), path);
  end();
  expect(await socketAnswers(path)).toBe(true);
  endNext();
});

it('fails with the error of the system, and leaves nothing', async () => {
  mkdirSync(join(dir, 'taken'));
  await expect(listenAt(createServer(), join(dir, 'taken'))).rejects.toThrow('EISDIR');
  await expect(listenAt(createServer(), join(dir, 'missing', 's'))).rejects.toThrow('EACCES');
  expect(readdirSync(dir)).toEqual(['taken']);
});
