import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { signal } from '../host/processes.ts';

/** The environment variable that identifies the worker whose podman started a process. */
export const WORKER_VARIABLE = 'GRYPHUS_CONTAINERS_OF';

/**
 * Ends the process that rootless podman leaves behind to keep the user namespace (`catatonit -P`), if this worker's
 * podman started it and nothing else runs in that namespace. Podman starts another when it is next used.
 */
export function endPause(worker: string): void {
  const all = processes();
  for (const pause of all.filter(({ pid }) => isPause(pid) && isOf(pid, worker))) {
    const alone = all.every(({ pid, space }) => pid === pause.pid || space !== pause.space);
    if (alone && pause.space !== OWN) signal(pause.pid, 'SIGKILL');
  }
}

const OWN = spaceOf('self');

function processes(): { readonly pid: number; readonly space: string | undefined }[] {
  try {
    return readdirSync('/proc').flatMap((name) =>
      /^[1-9]\d*$/.test(name) ? [{ pid: Number(name), space: spaceOf(name) }] : [],
    );
  } catch {
    return [];
  }
}

function spaceOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/user`);
  } catch {
    return undefined;
  }
}

function isPause(pid: number): boolean {
  const [program = '', first] = wordsOf(pid, 'cmdline');
  return program.split('/').at(-1) === 'catatonit' && first === '-P';
}

function isOf(pid: number, worker: string): boolean {
  return wordsOf(pid, 'environ').includes(`${WORKER_VARIABLE}=${worker}`);
}

function wordsOf(pid: number, file: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
