import { GryphusError } from '../../errors.ts';
import { Refused } from './options.ts';

/** HTCondor's commands, and the command here that has their options. */
export const CONDOR: Readonly<Record<string, readonly string[]>> = {
  condor_submit: ['submit'],
  condor_q: ['q'],
  condor_rm: ['rm'],
  condor_hold: ['hold'],
  condor_release: ['release'],
  condor_history: ['history'],
  condor_status: ['status', '--pool'],
  condor_submit_dag: ['dag', 'submit'],
  condor_tail: ['tail'],
  condor_userprio: ['userprio'],
  condor_qedit: ['edit'],
  condor_ssh_to_job: ['ssh'],
};

export const SLURM = ['sbatch', 'squeue', 'scancel', 'sacct', 'scontrol', 'sinfo', 'srun'] as const;

/** Speaks as Slurm's command of this name. */
export async function speak(command: string, words: readonly string[]): Promise<void> {
  const write = (text: string) => void process.stdout.write(text);
  const warn = (text: string) => void process.stderr.write(text);
  try {
    if (words[0] === '--version' || words[0] === '-V') return write('slurm 22.05.8\n');
    process.exitCode = await answer(command, words, write, warn);
  } catch (thrown) {
    const known = thrown instanceof Refused || thrown instanceof GryphusError;
    if (!known) throw thrown;
    for (const line of thrown.message.split('\n')) {
      // squeue's and scontrol's own messages stand alone.
      warn(line.startsWith('slurm_') ? `${line}\n` : `${command}: error: ${line}\n`);
    }
    process.exitCode = thrown instanceof Refused ? thrown.status : 1;
  }
}

async function answer(
  command: string,
  words: readonly string[],
  write: (text: string) => void,
  warn: (text: string) => void,
): Promise<number> {
  if (command === 'srun') return (await import('./srun.ts')).srun(words);
  const { Gryphus } = await import('../../index.ts');
  const gryphus = await Gryphus.open({});
  try {
    switch (command) {
      case 'sbatch':
        return await (await import('./sbatch.ts')).sbatch(gryphus, words, write, warn);
      case 'squeue':
        await (await import('./squeue.ts')).squeue(gryphus, words, write);
        return 0;
      case 'scancel':
        return await (await import('./scancel.ts')).scancel(gryphus, words, warn);
      case 'sacct':
        await (await import('./sacct.ts')).sacct(gryphus, words, write);
        return 0;
      case 'scontrol':
        return await (await import('./scontrol.ts')).scontrol(gryphus, words, write);
      case 'sinfo':
        await (await import('./sinfo.ts')).sinfo(gryphus, words, write);
        return 0;
      default:
        throw new Refused(`there is no command '${command}'`, 2);
    }
  } finally {
    await gryphus.close();
  }
}
