import { writeFileSync } from 'node:fs';
import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import { reasonOf } from '../../util/plain-text.ts';
import { GryphusCommand, prose, word } from '../command.ts';
import { ORDER_FLAGS, requestOf } from './order.ts';

export class DagDraw extends GryphusCommand {
  static override strict = false;
  static override summary = 'Draw a DAG.';
  static override description = prose(
    'As SVG or as Mermaid; a DAG given by its cluster is coloured by the state of its nodes. A large DAG is drawn by levels and categories.',
  );
  static override examples = [
    '<%= config.bin %> dag draw diamond.dag -o diamond.svg',
    '<%= config.bin %> dag draw 12 --format mermaid',
  ];
  static override args = { files: word('DAG files, or the cluster of a running DAG') };
  static override flags = {
    format: Flags.string({
      options: ['svg', 'mermaid'],
      summary: 'Output format; default: by the file name, else svg.',
    }),
    output: Flags.string({ char: 'o', helpValue: '<file>', summary: 'Write to this file, not to standard output.' }),
    usedagdir: ORDER_FLAGS.usedagdir,
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(DagDraw);
    const files = argv as string[];
    const [first] = files;
    if (first === undefined) throw new GryphusError('usage', 'Name a DAG file or the cluster of a DAG.');
    const format = flags.format ?? formatOf(flags.output);
    const { dag, status } = /^\d+$/.test(first)
      ? await this.#running(first, flags)
      : await this.#fromFiles(files, flags);
    const { dagTools } = await import('../../index.ts');
    const { drawMermaid, drawSvg } = await dagTools();
    const text = format === 'mermaid' ? drawMermaid(dag, status) : drawSvg(dag, files.join(' '), status);
    if (flags.output === undefined) process.stdout.write(text);
    else write(flags.output, text);
  }

  async #fromFiles(files: readonly string[], flags: { readonly usedagdir: boolean }) {
    const { dagTools } = await import('../../index.ts');
    const { dagOfFiles } = await dagTools();
    return { dag: dagOfFiles(requestOf(files, flags, []).order, process.cwd()), status: undefined };
  }

  async #running(cluster: string, flags: { readonly home?: string | undefined }) {
    return this.withGryphus(flags, async (gryphus) => {
      const replayed = await (await gryphus.dags()).engine(cluster);
      if (replayed !== undefined) return { dag: replayed.dag, status: replayed.status() };
      throw new GryphusError('not-found', `DAG ${cluster} is not running.`, { suggestions: ['Draw its file.'] });
    });
  }
}

/** Which of the two formats a file's name stands for. */
function formatOf(file: string | undefined): string {
  if (file === undefined || /\.svg$/i.test(file)) return 'svg';
  if (/\.(mmd|md|mermaid)$/i.test(file)) return 'mermaid';
  throw new GryphusError('usage', `${JSON.stringify(file)} is the name of neither an SVG nor a Mermaid file.`, {
    suggestions: ['Name it .svg or .mmd, or use --format.'],
  });
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (cause) {
    throw new GryphusError('output-unwritable', `Cannot write ${JSON.stringify(file)}: ${reasonOf(cause)}.`, {
      cause,
    });
  }
}
