import { Refused } from './options.ts';

/** A site or the pool, as a partition whose nodes are alike. Numbers that a site does not tell are 0. */
export interface Partition {
  readonly name: string;
  /** Jobs go there that name none. */
  readonly usual: boolean;
  readonly up: boolean;
  readonly nodes: number;
  /** Cores on all nodes, and how many of them are free. */
  readonly cpus: number;
  readonly freeCpus: number;
  /** On one node. */
  readonly memoryMb: number;
  readonly gpus: number;
}

/** A column: as wide as its widest cell if `width` is 0 or `grows`. */
export interface Column {
  readonly text: string;
  readonly head: string;
  readonly value?: (one: Partition) => string;
  readonly width: number;
  readonly right: boolean;
}

const onOne = ({ cpus, nodes }: Partition) => `${Math.floor(cpus / Math.max(1, nodes))}`;
const state = ({ up, cpus, freeCpus }: Partition) =>
  !up ? 'down' : cpus > 0 && freeCpus === 0 ? 'allocated' : freeCpus < cpus ? 'mixed' : 'idle';
const SHORT: Readonly<Record<string, string>> = { allocated: 'alloc', mixed: 'mix' };
const used = (one: Partition) => (one.up && one.freeCpus < one.cpus ? one.nodes : 0);
const idle = (one: Partition) => (one.up ? one.nodes - used(one) : 0);
const down = ({ up, nodes }: Partition) => (up ? 0 : nodes);
const busy = ({ up, cpus, freeCpus }: Partition) => (up ? cpus - freeCpus : 0);

/** Letter of `--format`, names of `--Format` (sinfo's manual), heading, value. A dash: no letter. */
const TABLE: readonly (readonly [letter: string, names: string, head: string, value: (one: Partition) => string])[] = [
  ['a', 'available', 'AVAIL', ({ up }) => (up ? 'up' : 'down')],
  ['A', 'nodeai', 'NODES(A/I)', (one) => `${used(one)}/${idle(one)}`],
  ['b', 'features_act', 'ACTIVE_FEATURES', () => '(null)'],
  ['B', 'maxcpuspernode', 'MAX_CPUS_PER_NODE', () => 'UNLIMITED'],
  ['c', 'cpus', 'CPUS', onOne],
  ['C', 'cpusstate', 'CPUS(A/I/O/T)', (one) => `${busy(one)}/${one.up ? one.freeCpus : 0}/${one.up ? 0 : one.cpus}/${one.cpus}`],
  ['d', 'disk', 'TMP_DISK', () => '0'],
  ['D', 'nodes', 'NODES', ({ nodes }) => `${nodes}`],
  ['e', 'freemem', 'FREE_MEM', () => 'N/A'],
  ['E', 'reason', 'REASON', ({ up }) => (up ? 'none' : 'Not responding')],
  ['f', 'features', 'AVAIL_FEATURES', () => '(null)'],
  ['F', 'nodeaiot', 'NODES(A/I/O/T)', (one) => `${used(one)}/${idle(one)}/${down(one)}/${one.nodes}`],
  ['g', 'groups', 'GROUPS', () => 'all'],
  ['G', 'gres', 'GRES', ({ gpus }) => (gpus === 0 ? '(null)' : `gpu:${gpus}`)],
  ['h', 'oversubscribe', 'OVERSUBSCRIBE', () => 'NO'],
  ['l', 'time', 'TIMELIMIT', () => 'infinite'],
  ['L', 'defaulttime', 'DEFAULTTIME', () => 'n/a'],
  ['m', 'memory', 'MEMORY', ({ memoryMb }) => `${memoryMb}`],
  ['n', 'nodehost', 'HOSTNAMES', ({ name }) => name],
  ['N', 'nodelist', 'NODELIST', ({ name }) => name],
  ['o', 'nodeaddr', 'NODE_ADDR', ({ name }) => name],
  ['O', 'cpusload', 'CPU_LOAD', () => 'N/A'],
  ['p', 'prioritytier priority', 'PRIO_TIER', () => '1'],
  ['P', 'partition', 'PARTITION', ({ name, usual }) => `${name}${usual ? '*' : ''}`],
  ['r', 'root', 'ROOT', () => 'no'],
  ['R', 'partitionname', 'PARTITION', ({ name }) => name],
  ['s', 'size', 'JOB_SIZE', () => '1-infinite'],
  ['S', 'allocnodes', 'ALLOCNODES', () => 'all'],
  ['t', 'statecompact', 'STATE', (one) => SHORT[state(one)] ?? state(one)],
  ['T', 'statelong', 'STATE', state],
  ['w', 'weight', 'WEIGHT', () => '1'],
  ['X', 'sockets', 'SOCKETS', () => '1'],
  ['Y', 'cores', 'CORES', onOne],
  ['Z', 'threads', 'THREADS', () => '1'],
  ['z', 'socketcorethread', 'S:C:T', (one) => `1:${onOne(one)}:1`],
  ['-', 'cluster', 'CLUSTER', () => 'gryphus'],
]; // biome-ignore format: a table

/** `--format`: `%[#][.][width]field` and the text between. */
export function columnsOf(format: string): Column[] {
  return [...format.matchAll(/%(#?)(\.?)(\d*)([A-Za-z])|([^%]+|%)/g)].map(([whole, , right, width, letter, text]) => {
    if (letter === undefined) return { text: text ?? '', head: '', width: 0, right: false };
    const row = TABLE.find(([one]) => one === letter);
    if (row === undefined) throw new Refused(`the format field ${whole} is not supported`);
    return { text: '', head: row[2], value: row[3], width: Number(width || 0), right: right === '.' };
  });
}

/** `--Format`: `name[:[.][width]]`, apart by commas; a suffix after the width is refused. */
export function longColumnsOf(format: string): Column[] {
  return format.split(',').map((one) => {
    const [, name = '', right = '', width = ''] = /^([\w-]*)(?::(\.?)(\d*))?$/.exec(one.trim()) ?? [];
    const row = TABLE.find(([, names]) => names.split(' ').includes(name.toLowerCase()));
    if (row === undefined) throw new Refused(`Invalid node format specification: ${one}`);
    return { text: '', head: row[2], value: row[3], width: Number(width || 20), right: right === '.' };
  });
}

/** The table's lines, the headings first. `grows`: what is wider than its column widens it, and is not cut. */
export function tableOf(columns: readonly Column[], rows: readonly Partition[], grows: boolean): string[] {
  const cells = columns.map(({ head, value }) => [head, ...rows.map((row) => value?.(row) ?? '')]);
  const widths = columns.map(({ width }, n) =>
    grows && width > 0 ? Math.max(width, ...(cells[n] ?? []).map((cell) => cell.length)) : width,
  );
  return [undefined, ...rows].map((_, at) =>
    columns
      .map(({ text, value, right }, n) => {
        if (value === undefined) return text;
        const cell = cells[n]?.[at] ?? '';
        const width = widths[n] ?? 0;
        if (width === 0) return cell;
        const cut = cell.slice(0, width);
        return right ? cut.padStart(width) : cut.padEnd(width);
      })
      .join(''),
  );
}
