import { expect, test } from 'vitest';
import { lentKey } from '../../src/transport/ssh2-signer.ts';

test('a key to lend can be made every time', () => {
  // If 1 in 256 cannot be parsed, 49 of 50 runs find one among 1,000.
  for (let count = 0; count < 1000; count++) expect(lentKey().isPrivateKey()).toBe(true);
}, 60_000);
