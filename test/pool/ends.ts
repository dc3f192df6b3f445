import type { RunExitRecord } from '../../src/pool/worker/attempt-place.ts';

/** Signals that can end a process: not those that are ignored or stop it, nor the two that glibc reserves. */
export const DEADLY: readonly number[] = Array.from({ length: 64 }, (_, i) => i + 1).filter(
  (signal) => ![17, 18, 19, 20, 21, 22, 23, 28, 32, 33].includes(signal),
);

export interface EndCase {
  /** For `sh -c`. */
  readonly text: string;
  readonly how: RunExitRecord['how'];
}

/** Every way in which a program can end. */
export const ENDS: readonly EndCase[] = [
  ...Array.from({ length: 256 }, (_, code) => ({ text: `exit ${code}`, how: { kind: 'exited', code } as const })),
  ...DEADLY.map((signal) => ({
    text: `ulimit -c 0; kill -${signal} $$`,
    how: { kind: 'signaled', signal } as const,
  })),
];

/** A sample of them, for tests where each costs more. */
export const SOME_ENDS: readonly EndCase[] = ENDS.filter(({ how }) =>
  how.kind === 'exited'
    ? [0, 1, 126, 127, 128, 129, 130, 137, 141, 143, 192, 193, 255].includes(how.code)
    : [1, 2, 6, 9, 11, 13, 15, 34, 64].includes(how.signal),
);
