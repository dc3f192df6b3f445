import { rowOf } from './options.ts';

/** What follows the name of a command, and where its options are told. */
const COMMANDS: Readonly<Record<string, readonly [synopsis: string, options: () => Promise<string>]>> = {
  sbatch: ['[OPTIONS] SCRIPT [ARGUMENTS]', scriptOptions],
  srun: ['[OPTIONS] COMMAND [ARGUMENTS]', scriptOptions],
  squeue: ['[OPTIONS]', async () => (await import('./squeue.ts')).SPEC],
  scancel: ['[OPTIONS] [JOB[_TASK]]...', async () => (await import('./scancel.ts')).SPEC],
  sacct: ['[OPTIONS]', async () => (await import('./sacct.ts')).SPEC],
  sinfo: ['[OPTIONS]', async () => (await import('./sinfo.ts')).SPEC],
  sacctmgr: [
    '[OPTIONS] show|list account|association|user [CONDITIONS]',
    async () => (await import('./sacctmgr.ts')).SPEC,
  ],
  scontrol: ['[OPTIONS] COMMAND [ARGUMENTS]', async () => (await import('./scontrol.ts')).SPEC],
};

/** In the words of `getopt`; what has a meaning here, of all that Slurm has. */
async function scriptOptions(): Promise<string> {
  const { optionsOf } = await import('../../index.ts');
  const options = optionsOf('slurm').map(
    ({ names, value }) => `${pair(names)}${value === undefined ? '' : value === 'needed' ? '=' : '=?'}`,
  );
  return [...options, '--wrap='].join(' ');
}

/** `-n|--ntasks` of all names. */
function pair(names: readonly string[]): string {
  const [letter, long] = [names.find((name) => /^-\w$/.test(name)), names.find((name) => name.startsWith('--'))];
  return [letter, long].filter((name) => name !== undefined).join('|');
}

/** What `--help` prints of one of Slurm's commands: the options that it has here. */
export async function helpText(command: string): Promise<string> {
  const [synopsis, options] = COMMANDS[command] ?? ['[OPTIONS]', async () => ''];
  const rows = (await options()).split(/\s+/).map((text) => {
    const { letter, long, value } = rowOf(text);
    const short = letter === '' ? '    ' : `-${letter}${long.startsWith('--') ? ', ' : ''}`;
    const word = value === 'none' ? '' : value === 'optional' ? '[=VALUE]' : '=VALUE';
    return `  ${short}${long.startsWith('--') ? `${long}${word}` : ''}`;
  });
  return `Usage: ${command} ${synopsis}\n${rows.join('\n')}

This is the ${command} of Gryphus, whose options mean what Slurm's do. Others are errors.\n`;
}
