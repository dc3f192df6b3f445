import { readFileSync } from 'node:fs';
import type { AdText, JobView } from '../../src/index.ts';
import type { State } from '../../src/job/life.ts';

const RECORDED = new URL('../fixtures/condor/', import.meta.url);

/** What a recorded command printed. */
export interface Recording {
  readonly command: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly exit: number;
}

export function recordings(file: string): Recording[] {
  const text = readFileSync(new URL(file, RECORDED), 'utf8');
  return text
    .split(/^(?=\$ )/m)
    .filter((part) => part.startsWith('$ '))
    .map((part) => {
      const found = /^\$ (.*)\n([\s\S]*?)(?:^--- stderr:\n([\s\S]*?))?^--- exit: (\d+)/m.exec(part);
      if (!found) throw new Error(`not a recording: ${part}`);
      return { command: found[1] ?? '', stdout: found[2] ?? '', stderr: found[3] ?? '', exit: Number(found[4]) };
    });
}

/** The output of one recorded command. */
export function recorded(file: string, command: string): Recording {
  const found = recordings(file).find((one) => one.command.trim() === command);
  if (!found) throw new Error(`${file} has no ${command}`);
  return found;
}

/** A job of a `-l` recording. */
export function recordedJob(file: string, command: string): JobView {
  const ad: Record<string, string> = {};
  for (const line of recorded(file, command).stdout.split('\n')) {
    const at = line.indexOf(' = ');
    if (at > 0) ad[line.slice(0, at)] = line.slice(at + 3);
  }
  return view(ad);
}

const STATES: Readonly<Record<string, State>> = { 1: 'idle', 2: 'running', 3: 'removed', 4: 'completed', 5: 'held' };

export function view(ad: AdText): JobView {
  return {
    id: { cluster: Number(ad['ClusterId']), proc: Number(ad['ProcId']) },
    state: STATES[ad['JobStatus'] ?? ''] ?? 'idle',
    ad,
  };
}
