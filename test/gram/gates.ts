import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a job manager's files pass through, and the word in the command that identifies it. */
const PROGRAMS = {
  in: ['/usr/bin/globus-gass-cache-util', '-add'],
  out: ['/usr/bin/globus-url-copy', '/out'],
} as const;

/** Gates in front of what a job manager's jobs read and write: requests to a closed gate wait. */
export interface Gates {
  /** For the gatekeeper's view of the machine. */
  readonly mounts: Readonly<Record<string, string>>;
  shut(way: 'in' | 'out'): void;
  /** A request is waiting there. */
  isWaitedAt(way: 'in' | 'out'): boolean;
  open(): void;
}

export function makeGates(dir: string): Gates {
  mkdirSync(dir);
  const mounts: Record<string, string> = {};
  for (const [way, [program, word]] of Object.entries(PROGRAMS)) {
    const [real, gate] = [join(dir, `${way}.real`), join(dir, way)];
    copyFileSync(program, real);
    const waits = `: >'${dir}/${way}.waits'; while [ -e '${dir}/${way}.shut' ]; do sleep 0.1; done`;
    writeFileSync(gate, `#!/bin/sh\ncase "$*" in *'${word}'*) ${waits} ;; esac\nexec '${real}' "$@"\n`, {
      mode: 0o755,
    });
    mounts[program] = gate;
  }
  return {
    mounts,
    shut(way) {
      rmSync(join(dir, `${way}.waits`), { force: true });
      writeFileSync(join(dir, `${way}.shut`), '');
    },
    isWaitedAt: (way) => existsSync(join(dir, `${way}.waits`)),
    open() {
      for (const way of Object.keys(PROGRAMS)) rmSync(join(dir, `${way}.shut`), { force: true });
    },
  };
}
