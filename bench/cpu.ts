import { readdirSync, readFileSync } from 'node:fs';

/** CPU seconds of all processes of the agent with this home, user and system (proc(5)). */
export function daemonCpu(agent: { readonly home: string }): number {
  return cpuOf(
    (pid) =>
      readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`GRYPHUS_HOME=${agent.home}`) &&
      /main\.js|redis-server/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8')),
  );
}

/** For our shell in this directory at the site, and for what it has started and waited for. */
export function siteCpu(siteDir: string): number {
  return cpuOf((pid) => isJobManager(pid, siteDir), true);
}

/** Of these, only the shell that answers, without the one beside it that looks for news. */
export function answeringCpu(siteDir: string): number {
  return cpuOf((pid) => isJobManager(pid, siteDir) && !isJobManager(statOf(pid)[1] ?? '', siteDir), true);
}

/** For one process, and for its children that it has waited for: some servers answer in a child. */
export function processCpu(pid: number): number {
  return cpuOf((name) => name === String(pid), true);
}

/** The processor time of each process that `named` gives a name, by that name; seconds, with those that have ended since the last look. */
export class CpuByName {
  readonly #named: (commandLine: string, environment: string) => string | undefined;
  /** By process: its name, what it had used at first and at the last look. */
  readonly #seen = new Map<string, { readonly name: string; readonly first: number; last: number }>();
  readonly #timer: NodeJS.Timeout;

  constructor(named: (commandLine: string, environment: string) => string | undefined) {
    this.#named = named;
    this.#look(true);
    this.#timer = setInterval(() => this.#look(), 100);
  }

  end(): ReadonlyMap<string, number> {
    clearInterval(this.#timer);
    this.#look();
    const all = new Map<string, number>();
    for (const { name, first, last } of this.#seen.values()) all.set(name, (all.get(name) ?? 0) + last - first);
    return all;
  }

  #look(isFirst = false): void {
    for (const pid of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
      try {
        const name = this.#named(
          readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '),
          readFileSync(`/proc/${pid}/environ`, 'utf8'),
        );
        if (name === undefined) continue;
        const fields = statOf(pid);
        const used = (Number(fields[11]) + Number(fields[12])) / 100;
        const seen = this.#seen.get(pid);
        if (seen) seen.last = used;
        else this.#seen.set(pid, { name, first: isFirst ? used : 0, last: used });
      } catch {
        // It exited in the meantime.
      }
    }
  }
}

function isJobManager(pid: string, siteDir: string): boolean {
  const message = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  return message.includes(siteDir) && message.includes('jobmanager.sh');
}

function cpuOf(wanted: (pid: string) => boolean, children = false): number {
  let ticks = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (!wanted(pid)) continue;
      const fields = statOf(pid);
      ticks += Number(fields[11]) + Number(fields[12]);
      if (children) ticks += Number(fields[13]) + Number(fields[14]);
    } catch {
      // It exited in the meantime.
    }
  }
  return ticks / 100;
}

/** The fields after the command's name: the state, the parent and so on. */
function statOf(pid: string): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
