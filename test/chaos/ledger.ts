/** What the programs of a chaos run record about themselves: nothing of Gryphus is between a program and its line. */

/**
 * `job.sh NAME SECONDS END LEDGER` writes a line when it starts and one when it ends; END is an exit status, or `s15`
 * for a signal. Each line is one appending write. The clock is the machine's uptime, which is never set.
 */
export const PROGRAM = `#!/bin/sh
read -r up _ </proc/uptime
echo "s $1 $$ $up" >>"$4"
echo "out $1 $$"
[ "$2" = 0 ] || sleep "$2"
read -r up _ </proc/uptime
case $3 in
  s*) echo "x $1 $$ $up \${3#s}" >>"$4"; kill -"\${3#s}" $$ ;;
  *) echo "e $1 $$ $up $3" >>"$4"; exit "$3" ;;
esac
`;

/** How a program announced that it would end, immediately before. */
export type Last = { readonly code: number } | { readonly signal: number };

/** One start of a program. Times in seconds of the machine's uptime. */
export interface Run {
  readonly pid: number;
  readonly start: number;
  readonly end?: number;
  readonly last?: Last;
}

/** Names a run: a process id is reused within minutes, but hardly for the same job. */
export function runName(job: string, pid: number): string {
  return `${job} ${pid}`;
}

/** The runs of each job, by its id, in order of their starts. Throws on a line that no program writes. */
export function readLedger(text: string): ReadonlyMap<string, readonly Run[]> {
  const runs = new Map<string, Run[]>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const [, kind, name = '', pid, at, how] = /^([sex]) (\S+) (\d+) ([\d.]+)(?: (\d+))?$/.exec(line) ?? [];
    if (kind === undefined) throw new Error(`not a line of the ledger: ${line}`);
    const all = runs.get(name) ?? [];
    runs.set(name, all);
    if (kind === 's') all.push({ pid: Number(pid), start: Number(at) });
    else {
      const open = all.findLastIndex((run) => run.pid === Number(pid) && run.end === undefined);
      const run = all[open];
      if (run === undefined) throw new Error(`an end without a start: ${line}`);
      all[open] = { ...run, end: Number(at), last: kind === 'e' ? { code: Number(how) } : { signal: Number(how) } };
    }
  }
  return runs;
}
