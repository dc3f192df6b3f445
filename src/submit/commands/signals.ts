import type { JobMaker, Step } from '../maker.ts';

/** The signals that can be named, with their numbers on Linux. */
const SIGNALS: Readonly<Record<string, number>> = {
  SIGKILL: 9, SIGCONT: 18, SIGTERM: 15, SIGQUIT: 3, SIGHUP: 1, SIGSTOP: 19, SIGTSTP: 20, SIGUSR1: 10, SIGUSR2: 12,
  SIGCHLD: 17, SIGABRT: 6, SIGALRM: 14, SIGFPE: 8, SIGILL: 4, SIGINT: 2, SIGPIPE: 13, SIGSEGV: 11, SIGTRAP: 5,
  SIGTTIN: 21, SIGTTOU: 22, SIGIO: 29, SIGBUS: 7, SIGURG: 23, SIGPROF: 27, SIGWINCH: 28, SIGSYS: 31, SIGXCPU: 24,
  SIGXFSZ: 25,
}; // biome-ignore format: a table

function signal(job: JobMaker, command: string, attribute: string): string | undefined {
  const text = job.param(command, attribute);
  if (text === undefined) return undefined;
  const number = Number.parseInt(text, 10) || 0;
  const name = number === 0 ? text.toUpperCase() : Object.keys(SIGNALS).find((known) => SIGNALS[known] === number);
  if (name !== undefined && Object.hasOwn(SIGNALS, name)) return name;
  throw job.fault(command, `invalid signal ${text}`, ['Give its name, as in SIGTERM, or its number.'], attribute);
}

export const signals: Step = {
  name: 'kill_sig',
  run(job) {
    const kill = signal(job, 'kill_sig', 'KillSig') ?? (job.kind.universe === 5 ? undefined : 'SIGTERM');
    if (kill !== undefined) job.setString('KillSig', kill);
    const remove = signal(job, 'remove_kill_sig', 'RemoveKillSig');
    if (remove !== undefined) job.setString('RemoveKillSig', remove);
    const hold = signal(job, 'hold_kill_sig', 'HoldKillSig');
    if (hold !== undefined) job.setString('HoldKillSig', hold);
    const timeout = job.param('kill_sig_timeout', 'KillSigTimeout');
    if (timeout !== undefined) job.setInt('KillSigTimeout', Number.parseInt(timeout, 10) || 0);
  },
};
