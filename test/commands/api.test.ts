import { connect } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serve } from '../../src/commands/api/server.ts';
import { Inflow } from '../../src/commands/api/inflow.ts';

const dir = mkdtempSync(join(tmpdir(), 'gry-'));
const socket = join(dir, 'api');
let ended: Promise<void>;
beforeAll(async () => {
  await new Promise<void>((ready, failed) => {
    const open = () => Promise.reject(new Error('there is no agent'));
    ended = serve({ socket, version: '9', open }, ready);
    ended.catch(failed);
  });
});
afterAll(async () => {
  process.emit('SIGTERM');
  await ended;
  rmSync(dir, { recursive: true });
});

/** Sends lines, and returns the server's hello and as many answers. */
function talk(...lines: readonly string[]): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    const client = connect(socket);
    let text = '';
    client.on('error', reject);
    client.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const answers = text.split('\n').slice(0, -1);
      if (answers.length <= lines.length) return;
      client.destroy();
      resolve(answers.map((line) => JSON.parse(line) as unknown));
    });
    client.write(lines.map((line) => `${line}\n`).join(''));
  });
}

describe('the protocol', () => {
  it('says its version first, and answers what it does not understand', async () => {
    const refused = (id: number | null, message: unknown) =>
      expect.objectContaining({ id, error: expect.objectContaining({ code: 'bad-input', message }) as unknown });
    expect(await talk('{', '{"id":1}', '{"id":2,"method":"fly"}')).toEqual([
      { gryphus: '9', protocol: 1 },
      refused(null, 'A line is not of the protocol.'),
      refused(null, 'A line is not of the protocol.'),
      refused(2, "There is no method 'fly'."),
    ]);
  });

  it('says why there is no agent', async () => {
    const [, answer] = await talk('{"id":3,"method":"sites"}');
    expect(answer).toEqual({ id: 3, error: { code: 'internal', message: 'there is no agent', suggestions: [] } });
  });
});

it('tasks are read as they come, until the end', async () => {
  const inflow = new Inflow<number>();
  inflow.add([1, 2]);
  const seen: number[] = [];
  const reading = (async () => {
    for await (const one of inflow.read()) {
      seen.push(one);
      if (one === 2) setImmediate(() => inflow.add([3]));
      if (one === 3) inflow.close();
    }
  })();
  await reading;
  expect(seen).toEqual([1, 2, 3]);
});
