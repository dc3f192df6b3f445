import type { AdText, Gryphus } from '../../index.ts';
import { inAd, readNumber, readString, type TextSource } from '../../job/values.ts';
import { getopt, Refused } from './options.ts';
import { columnsOf, longColumnsOf, type Partition, tableOf } from './sinfo-fields.ts';
import { inClusters } from './slurm-targets.ts';

/** Its options, for `getopt`. */
export const SPEC =
  '-h|--noheader -o|--format= -O|--Format= -p|--partition= -a|--all -M|--clusters= -s|--summarize -l|--long -N|--Node -e|--exact -t|--states= -n|--nodes= -d|--dead -r|--responding -R|--list-reasons -S|--sort= -i|--iterate= -T|--reservation -v|--verbose --json --local --hide';

/** What it prints without a format (sinfo's source). */
const FORMATS = {
  usual: '%9P %.5a %.10l %.6D %.6t %N',
  summary: '%9P %.5a %.10l %.16F %N',
  long: '%9P %.5a %.10l %.10s %.4r %.13h %.10g %.6D %.11T %N',
  nodes: '%9N %.6D %.9P %6t',
} as const;

/** The pool and the sites, as partitions; the exit status. */
export async function sinfo(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const given = getopt(SPEC, words);
  const { values, words: rest } = given;
  const here = inClusters(given);
  if (rest.length > 0) throw new Refused(`Unrecognized option: ${rest[0]}`);
  for (const option of ['list-reasons', 'sort', 'iterate', 'reservation', 'json'])
    if (values.has(option)) throw new Refused(`option '--${option}' is not supported`);
  const format = values.get('format') ?? process.env['SINFO_FORMAT'];
  const long = values.get('Format');
  if (values.has('format') && long !== undefined)
    throw new Refused('-o (--format) and -O (--Format) are mutually exclusive');
  const kind = values.has('Node')
    ? 'nodes'
    : values.has('summarize')
      ? 'summary'
      : values.has('long')
        ? 'long'
        : 'usual';
  const columns = long === undefined ? columnsOf(format ?? FORMATS[kind]) : longColumnsOf(long);
  const list = (name: string) => values.get(name)?.toLowerCase().split(',');
  const [partitions, nodes, states] = [list('partition'), list('nodes'), list('states')];
  const alive = values.has('dead') ? false : values.has('responding') ? true : undefined;
  const [stateColumn, shortState] = columnsOf('%T%t');
  const shown = (await partitionsOf(gryphus)).filter(
    (one) =>
      here({ partition: one.name }) &&
      (partitions === undefined || partitions.includes(one.name.toLowerCase())) &&
      (nodes === undefined || nodes.includes(one.name.toLowerCase())) &&
      (alive === undefined || one.up === alive) &&
      (states === undefined ||
        [stateColumn, shortState].some((column) => states.includes(column?.value?.(one) ?? '')) ||
        states.includes('all')),
  );
  const [head = '', ...lines] = tableOf(columns, shown, format === undefined && long === undefined);
  for (const line of values.has('noheader') ? lines : [head, ...lines]) write(`${line}\n`);
  return 0;
}

async function partitionsOf(gryphus: Gryphus): Promise<Partition[]> {
  const [sites, ads, slots] = await Promise.all([gryphus.sites(), gryphus.siteAds(), gryphus.slots()]);
  return [
    poolOf(slots),
    ...sites.map(({ name, connection }): Partition => {
      const ad = inAd(ads.find((one) => readString(inAd(one), 'Name') === name) ?? {});
      const cpus = readNumber(ad, 'TotalCpus') ?? 0;
      return {
        name,
        usual: false,
        up: connection === 'up' || connection === 'unused',
        nodes: 1,
        cpus,
        freeCpus: Math.min(cpus, readNumber(ad, 'FreeCpus') ?? cpus),
        memoryMb: 0,
        gpus: 0,
      };
    }),
  ];
}

/** Its workers are its nodes. What a partitionable slot still has is free; other slots have the rest. */
function poolOf(slots: readonly AdText[]): Partition {
  const ads = slots.map(inAd);
  const whole = ads.filter((ad) => ad.get('PartitionableSlot') === 'true');
  const sum = (some: readonly TextSource[], name: string) =>
    some.reduce((all, ad) => all + (readNumber(ad, name) ?? 0), 0);
  const nodes = Math.max(1, whole.length);
  return {
    name: 'pool',
    usual: true,
    up: true,
    nodes,
    cpus: sum(ads, 'Cpus'),
    freeCpus: sum(whole, 'Cpus'),
    memoryMb: Math.floor(sum(ads, 'Memory') / nodes),
    gpus: Math.floor(sum(ads, 'GPUs') / nodes),
  };
}
