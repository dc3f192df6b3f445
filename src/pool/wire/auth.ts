import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** What a worker authenticates with: a public name, and a secret that is never sent. */
export interface Token {
  readonly id: string;
  /** 32 bytes in hexadecimal. */
  readonly secret: string;
}

export function newToken(): Token {
  return { id: randomBytes(9).toString('base64url'), secret: randomBytes(32).toString('hex') };
}

export function nonce(): string {
  return randomBytes(18).toString('base64url');
}

/**
 * Proves that the speaker (`central-manager` or `worker`) has the token's secret, in answer to these two nonces. Each
 * side proves it to the other; a proof cannot be replayed or used in the other direction.
 */
export function proof(
  token: Token,
  speaker: 'central-manager' | 'worker',
  centralManagerNonce: string,
  workerNonce: string,
): string {
  return createHmac('sha256', Buffer.from(token.secret, 'hex'))
    .update(`gryphus-pool-1\n${speaker}\n${token.id}\n${centralManagerNonce}\n${workerNonce}`)
    .digest('base64url');
}

export function isProof(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
