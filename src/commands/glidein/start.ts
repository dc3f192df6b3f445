import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import { GryphusCommand, prose } from '../command.ts';

export class GlideinStart extends GryphusCommand {
  static override summary = 'Send workers to a site; they run jobs from your queue.';
  static override description =
    prose(`Each glidein is an ordinary job at the site. When it starts, it checks its node, connects to your
agent and runs jobs of the vanilla universe, one after another, until it has been idle for \`glidein.idle\` or its time is over.
Nothing has to be installed at the site. Defaults come from the site's file (\`glidein.cores\`, …); with \`glidein.max\` there,
the agent starts and stops glideins automatically.`);
  static override examples = [
    '<%= config.bin %> glidein start --site cluster1 -n 20 --walltime 4h --cores 8',
    '<%= config.bin %> glidein start --site cluster1 --memory 16G',
  ];
  static override flags = {
    site: Flags.string({ required: true, helpValue: '<name>', summary: 'The site.' }),
    number: Flags.integer({ char: 'n', default: 1, min: 1, summary: 'How many glideins.' }),
    walltime: Flags.string({ helpValue: '<time>', summary: 'The time limit of each, as 4h or 1h30m.' }),
    cores: Flags.integer({ min: 1, summary: 'Cores of each.' }),
    memory: Flags.string({ helpValue: '<size>', summary: 'Memory of each, as 16G.' }),
    gpus: Flags.integer({ min: 0, summary: 'GPUs of each.' }),
    json: Flags.boolean({ summary: 'A JSON object.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(GlideinStart);
    const { kinds } = await import('../../index.ts');
    const { duration, memorySize } = await kinds();
    const walltime = flags.walltime === undefined ? undefined : read('--walltime', flags.walltime, duration);
    const memory = flags.memory === undefined ? undefined : read('--memory', flags.memory, memorySize);
    await this.withGryphus(flags, async (gryphus) => {
      const { cluster } = await (await gryphus.glideins()).start({
        site: flags.site,
        count: flags.number,
        ...(flags.cores === undefined ? {} : { cores: flags.cores }),
        ...(memory === undefined ? {} : { memoryMb: Math.floor(memory / 2 ** 20) }),
        ...(flags.gpus === undefined ? {} : { gpus: flags.gpus }),
        ...(walltime === undefined ? {} : { walltime }),
      });
      process.stdout.write(
        flags.json
          ? `${JSON.stringify({ cluster, site: flags.site, glideins: flags.number })}\n`
          : `${flags.number} ${flags.number === 1 ? 'glidein' : 'glideins'} requested at ${flags.site}: cluster ${cluster}.\n`,
      );
    });
  }
}

interface Kind<T> {
  readonly says: string;
  read(raw: unknown): T | undefined;
}

function read<T>(flag: string, text: string, kind: Kind<T>): T {
  const value = kind.read(text);
  if (value === undefined) throw new GryphusError('usage', `${flag} ${text}: it must be ${kind.says}.`);
  return value;
}
