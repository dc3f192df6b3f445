import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { acceptHome, greetHome } from '../../src/reverse-connection/secure.ts';
import { bytes, socketPair } from './pair.ts';

describe('who comes home', () => {
  it('is identified by its token, and the messages cannot be read on the way', async () => {
    const key = randomBytes(32);
    const [near, far] = await socketPair();
    let seen = '';
    near.on('data', (chunk: Buffer) => (seen += chunk.toString('latin1')));
    const [guest, link] = await Promise.all([
      acceptHome(far, { keyOf: (worker) => (worker === 'p1' ? key : undefined) }),
      greetHome(near, { worker: 'p1', key }),
    ]);
    expect(guest.worker).toBe('p1');
    link.write('the secret of my job');
    expect((await bytes(guest.link, 20)).toString()).toBe('the secret of my job');
    guest.link.write('and the answer');
    expect((await bytes(link, 14)).toString()).toBe('and the answer');
    expect(seen).not.toContain('answer');
    const closed = new Promise((resolve) => guest.link.once('close', resolve));
    near.destroy();
    await closed;
  });

  it('is sent away with the token of another, and without one', async () => {
    const keys = new Map([
      ['p1', randomBytes(32)],
      ['p2', randomBytes(32)],
    ]);
    const knock = async (worker: string, key: Buffer | undefined) => {
      const [near, far] = await socketPair();
      const results = await Promise.allSettled([
        acceptHome(far, { keyOf: (name) => keys.get(name), patienceMs: 5000 }),
        greetHome(near, { worker, key: key ?? randomBytes(32), patienceMs: 5000 }),
      ]);
      return results.map((result) => result.status);
    };
    expect(await knock('p1', keys.get('p1'))).toEqual(['fulfilled', 'fulfilled']);
    expect(await knock('p2', keys.get('p1'))).toEqual(['rejected', 'rejected']);
    expect(await knock('p3', undefined)).toEqual(['rejected', 'rejected']);
  });

  it('is not waited for without end when it says nothing', async () => {
    const [near, far] = await socketPair();
    await expect(acceptHome(far, { keyOf: () => undefined, patienceMs: 50 })).rejects.toThrow('nothing was received');
    near.destroy();
  });
});
