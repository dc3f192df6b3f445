import { expect, test } from 'vitest';
import { lentKey } from '../../src/transport/ssh2-signer.ts';

test('a key to lend can be made every time', () => {
  // Where 1 in 256 cannot be read, one of 1,000 cannot, in 49 of 50 runs.
  for (let count = 0; count < 1000; count++) expect(lentKey().isPrivateKey()).toBe(true);
}, 60_000);
