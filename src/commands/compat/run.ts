import { GryphusError } from '../../errors.ts';
import type { Gryphus } from '../../index.ts';
import { CONDOR } from './names.ts';
import { Refused, type Severity } from './options.ts';

type Write = (text: string) => void;

/** A command of another system: how it answers and how it writes an error. */
interface Spoken {
  /** Its exit status. */
  readonly answer: (words: readonly string[], write: Write, warn: Write) => Promise<number>;
  readonly error: (line: string, severity: Severity) => string;
  /** Words that ask for its options, alone or, if `anywhere`, among others. */
  readonly help?: { readonly words: readonly string[]; readonly anywhere: boolean };
  readonly version: { readonly words: readonly string[]; readonly text: string };
}

const NO_VERSION = { words: [], text: '' };
const SLURM_VERSION = { words: ['--version', '-V'], text: 'slurm 22.05.8\n' };

function slurm(command: string, answer: Spoken['answer']): Spoken {
  const error = (line: string, severity: Severity) => {
    if (severity === 'bare') return line;
    if (severity !== 'option') return `${command}: ${severity}: ${line}`;
    return command === 'sacct' ? `sacct: ${line}` : `${command}: ${line}\nTry "${command} --help" for more information`;
  };
  const submits = command === 'sbatch' || command === 'srun';
  // The words of a script or command are its own; for the others, -h is another option.
  const help = submits
    ? { words: ['--help', '--usage', '-h'], anywhere: false }
    : { words: ['--help', '--usage'], anywhere: true };
  return { answer, error, help, version: SLURM_VERSION };
}

function pbs(command: string, answer: Spoken['answer']): Spoken {
  const version = { words: ['--version'], text: 'pbs_version = 23.06.06\n' };
  return { answer, error: (line) => `${command}: ${line}`, version };
}

function plain(command: string, answer: Spoken['answer']): Spoken {
  return { answer, error: (line) => `gryphus: ${command}: ${line}`, version: NO_VERSION };
}

function sge(answer: Spoken['answer']): Spoken {
  return { answer, error: (line) => line, version: NO_VERSION };
}

function condor(answer: Spoken['answer'], before = ''): Spoken {
  return { answer, error: (line) => `${before}${line}`, version: NO_VERSION };
}

/** The commands, by the names under which `compat install` calls them. Their code is loaded when it is called. */
const SPOKEN: Readonly<Record<string, Spoken>> = {
  sbatch: slurm('sbatch', withAgent(async (g, ...to) => (await import('./sbatch.ts')).sbatch(g, ...to))),
  squeue: slurm('squeue', withAgent(async (g, words, write) => (await import('./squeue.ts')).squeue(g, words, write))),
  scancel: slurm('scancel', withAgent(async (g, words, _, warn) => (await import('./scancel.ts')).scancel(g, words, warn))),
  sacct: slurm('sacct', withAgent(async (g, words, write) => (await import('./sacct.ts')).sacct(g, words, write))),
  scontrol: slurm('scontrol', withAgent(async (g, words, write) => (await import('./scontrol.ts')).scontrol(g, words, write))),
  sinfo: slurm('sinfo', withAgent(async (g, words, write) => (await import('./sinfo.ts')).sinfo(g, words, write))),
  sacctmgr: slurm('sacctmgr', withAgent(async (g, words, write) => (await import('./sacctmgr.ts')).sacctmgr(g, words, write))),
  srun: slurm('srun', async (...to) => (process.env['SLURM_JOB_ID'] === undefined ? outside : within)(...to)),
  'snakemake-submit': plain('submit', withAgent(async (g, ...to) => (await import('./snakemake.ts')).snakemakeSubmit(g, ...to))),
  'snakemake-status': plain('status', withAgent(async (g, words, write) => (await import('./snakemake.ts')).snakemakeStatus(g, words, write))),
  'snakemake-cancel': plain('cancel', withAgent(async (g, words, _, warn) => (await import('./scancel.ts')).scancel(g, words, warn))),
  'pbs-qsub': pbs('qsub', withAgent(async (g, ...to) => (await import('./qsub.ts')).pbsQsub(g, ...to))),
  'pbs-qstat': pbs('qstat', withAgent(async (g, ...to) => (await import('./pbs-qstat.ts')).pbsQstat(g, ...to))),
  'pbs-qdel': pbs('qdel', withAgent(async (g, words, _, warn) => (await import('./pbs-act.ts')).pbsAct(g, 'qdel', words, warn))),
  'pbs-qhold': pbs('qhold', withAgent(async (g, words, _, warn) => (await import('./pbs-act.ts')).pbsAct(g, 'qhold', words, warn))),
  'pbs-qrls': pbs('qrls', withAgent(async (g, words, _, warn) => (await import('./pbs-act.ts')).pbsAct(g, 'qrls', words, warn))),
  'sge-qsub': sge(withAgent(async (g, ...to) => (await import('./qsub.ts')).sgeQsub(g, ...to))),
  'sge-qstat': sge(withAgent(async (g, words, write) => (await import('./sge-qstat.ts')).sgeQstat(g, words, write))),
  'sge-qdel': sge(withAgent(async (g, words, write) => (await import('./sge-act.ts')).sgeAct(g, 'qdel', words, write))),
  'sge-qhold': sge(withAgent(async (g, words, write) => (await import('./sge-act.ts')).sgeAct(g, 'qhold', words, write))),
  'sge-qrls': sge(withAgent(async (g, words, write) => (await import('./sge-act.ts')).sgeAct(g, 'qrls', words, write))),
  'sge-qacct': sge(withAgent(async (g, words, write) => (await import('./qacct.ts')).qacct(g, words, write))),
  condor_prio: condor(withAgent(async (g, words, _, warn) => (await import('./condor.ts')).condorPrio(g, words, warn))),
  condor_version: condor(async (words, write) => (await import('./condor.ts')).condorVersion(words, write), 'ERROR: '),
  condor_config_val: condor(async (...to) => (await import('./condor.ts')).condorConfigVal(...to)),
}; // biome-ignore format: a table

const within: Spoken['answer'] = async (words) => (await import('./srun.ts')).srun(words);

const outside = withAgent(async (g, words, _, warn) => (await import('./srun-outside.ts')).srunOutside(g, words, warn));

function withAgent(
  answer: (gryphus: Gryphus, words: readonly string[], write: Write, warn: Write) => Promise<number>,
): Spoken['answer'] {
  return async (words, write, warn) => {
    const { Gryphus } = await import('../../index.ts');
    const gryphus = await Gryphus.open({});
    try {
      return await answer(gryphus, words, write, warn);
    } finally {
      await gryphus.close();
    }
  };
}

/** The words of our own command line that do what a command of HTCondor's does, if there are such. */
export function ownWords(command: string, words: readonly string[]): readonly string[] | undefined {
  // As HTCondor's tools do, whose -v is another option of some.
  const own = /^-vers(i(on?)?)?$/.test(words[0] ?? '') ? undefined : CONDOR[command];
  if (command !== 'condor_ssh_to_job') return own && [...own, ...words];
  // What follows the job is one line for the shell there, as it is with ssh.
  const job = words.findIndex((word) => !word.startsWith('-'));
  const line = job < 0 ? [] : words.slice(job + 1);
  const before = (job < 0 ? words : words.slice(0, job + 1)).filter((word) => word !== '-auto-retry');
  return own && [...own, ...before, ...(line.length === 0 ? [] : ['--', line.join(' ')])];
}

function asksHelp({ help }: Spoken, words: readonly string[]): boolean {
  return help !== undefined && (help.anywhere ? words : words.slice(0, 1)).some((word) => help.words.includes(word));
}

/** Speaks as another system's command of this name. */
export async function speak(command: string, words: readonly string[]): Promise<void> {
  const write = (text: string) => void process.stdout.write(text);
  const warn = (text: string) => void process.stderr.write(text);
  // Of these, only the version is asked here.
  if (command in CONDOR) return write((await import('./condor.ts')).CONDOR_VERSION);
  const spoken = SPOKEN[command];
  if (spoken === undefined) throw new GryphusError('usage', `There is no command '${command}'.`);
  try {
    if (spoken.version.words.includes(words[0] ?? '')) write(spoken.version.text);
    else if (asksHelp(spoken, words)) write(await (await import('./help.ts')).helpText(command));
    else process.exitCode = await spoken.answer(words, write, warn);
  } catch (thrown) {
    if (!(thrown instanceof Refused || thrown instanceof GryphusError)) throw thrown;
    const { severity, status } = thrown instanceof Refused ? thrown : { severity: 'error' as const, status: 1 };
    for (const line of thrown.message.split('\n')) warn(`${spoken.error(line, severity)}\n`);
    process.exitCode = status;
  }
}
