import type { Gryphus } from '../../index.ts';
import { getopt, Refused } from './options.ts';
import { inClusters } from './slurm-targets.ts';

const FIELDS: Readonly<Record<string, readonly [head: string, value: (partition: Partition) => string]>> = {
  P: ['PARTITION', ({ name, usual }) => `${name}${usual ? '*' : ''}`],
  R: ['PARTITION', ({ name }) => name],
  a: ['AVAIL', ({ up }) => (up ? 'up' : 'down')],
  l: ['TIMELIMIT', () => 'infinite'],
  D: ['NODES', () => '1'],
  F: ['NODES(A/I/O/T)', ({ up }) => (up ? '0/1/0/1' : '0/0/1/1')],
  t: ['STATE', ({ up }) => (up ? 'idle' : 'down')],
  T: ['STATE', ({ up }) => (up ? 'idle' : 'down')],
  N: ['NODELIST', ({ name }) => name],
};

interface Partition {
  readonly name: string;
  readonly usual: boolean;
  readonly up: boolean;
}

/** The pool and the sites, as partitions. */
export async function sinfo(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const given = getopt('-h|--noheader -o|--format= -p|--partition= -a|--all -M|--clusters=', words);
  const { values, words: rest } = given;
  const here = inClusters(given);
  if (rest.length > 0) throw new Refused(`Unrecognized option: ${rest[0]}`);
  const format = values.get('format') ?? '%9P %.5a %.10l %.6D %.6t %N';
  const sites = await gryphus.sites();
  const wanted = values.get('partition')?.split(',');
  const all = [
    { name: 'pool', usual: true, up: true },
    ...sites.map(({ name, connection }) => ({
      name,
      usual: false,
      up: connection === 'up' || connection === 'unused',
    })),
  ];
  const shown = all.filter(({ name }) => here({ partition: name }) && (wanted === undefined || wanted.includes(name)));
  const line = (of: (letter: string) => string) =>
    format.replaceAll(/%(\.?)(\d*)([A-Za-z])/g, (_, right: string, width: string, letter: string) => {
      const text = of(letter);
      const cut = width === '' ? text : text.slice(0, Number(width));
      return right === '' ? cut.padEnd(Number(width)) : cut.padStart(Number(width));
    });
  const field = (letter: string) => {
    const found = FIELDS[letter];
    if (found === undefined) throw new Refused(`the format field %${letter} is not supported`);
    return found;
  };
  if (!values.has('noheader')) write(`${line((letter) => field(letter)[0])}\n`);
  for (const one of shown) write(`${line((letter) => field(letter)[1](one))}\n`);
  return 0;
}
