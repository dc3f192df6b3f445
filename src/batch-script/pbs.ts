import { BadValue, type Dialect, noMailAtBegin, type Option, type Wishes, type Written } from './model.ts';
import { setVariable } from './slurm.ts';
import { atLeastOne, bytes, clockSeconds, commaList, count, indices } from './values.ts';

const OPTIONS: readonly Option[] = [
  { names: '-N', value: 'needed', fate: 'done', becomes: 'batch_name', take: (w, v) => void (w.name = v) },
  { names: '-l', value: 'needed', fate: 'done', becomes: 'walltime: batch_runtime; nodes, select, ncpus, ppn, mpiprocs: request_cpus, and machine_count and ranks_per_node for several nodes where it is not a PBS site; mem, pmem, vmem: request_memory; ngpus, gpus: request_gpus; others as a word for the site', take: resources },
  { names: '-q', value: 'needed', fate: 'done', becomes: 'batch_queue at a PBS site; if a site has this name, the site', take: (w, v) => void (w.queue = v) },
  { names: '-A -P', value: 'needed', fate: 'done', becomes: 'batch_project at a site of the same system; elsewhere it is only shown', take: (w, v) => void (w.project = v) },
  { names: '-J -t', value: 'needed', fate: 'done', becomes: 'one job for each index; %N: max_materialize', take: (w, v) => void (w.array = indices(v)) },
  { names: '-W', value: 'needed', fate: 'done', becomes: 'depend: as for Slurm; others as a word for the site', take: attributes },
  { names: '-o', value: 'needed', fate: 'done', becomes: 'output, with $PBS_JOBID, $PBS_ARRAY_INDEX, $PBS_ARRAYID and ^array_index^', take: (w, v) => void (w.output = v) },
  { names: '-e', value: 'needed', fate: 'done', becomes: 'error, like -o', take: (w, v) => void (w.error = v) },
  { names: '-j', value: 'needed', fate: 'done', becomes: 'one file for both streams', take: join },
  { names: '-k -R', value: 'needed', fate: 'without', becomes: 'output files go to their own place' },
  { names: '-m', value: 'needed', fate: 'done', becomes: 'notification; there is no mail when a job begins', take: mail },
  { names: '-M', value: 'needed', fate: 'done', becomes: 'notify_user', take: (w, v) => void (w.mailUser = v) },
  { names: '-d -w', value: 'needed', fate: 'done', becomes: 'initialdir', take: (w, path) => void (w.directory = { path }) },
  { names: '-v', value: 'needed', fate: 'done', becomes: 'environment', take: (w, v) => commaList(v).forEach((one) => setVariable(w, one)) },
  { names: '-V', fate: 'done', becomes: 'getenv = true; left out at a site on another machine', take: (w) => void (w.environment = 'all') },
  { names: '-h', fate: 'done', becomes: 'hold = true', take: (w) => void (w.held = true) },
  { names: '-p', value: 'needed', fate: 'done', becomes: 'priority', take: priority },
  { names: '-S', value: 'needed', fate: 'done', becomes: 'what runs a script whose first line does not begin with #!', take: shell },
  { names: '-r', value: 'needed', fate: 'without', becomes: 'a job runs once; when a machine of the pool fails, it runs again' },
  { names: '-a -c -u', value: 'needed', fate: 'site', becomes: '' },
  { names: '-f -z', fate: 'done', becomes: 'about the command only' },
  { names: '-I -X -x', fate: 'refused', becomes: 'a shell in a job is opened by `gryphus run --tty -- bash` or our `qsub -I`' },
]; // biome-ignore format: a table

export const pbs: Dialect = {
  system: 'pbs',
  title: 'PBS',
  prefix: /^#PBS(?:\s+|$)/,
  atTopOnly: true,
  long: false,
  options: OPTIONS,
  environment: 'none',
  startsIn: 'home',
};

function resources(wishes: Wishes, value: string, { line }: Written): void {
  for (const item of commaList(value)) {
    const equals = item.indexOf('=');
    const [name, given] = equals < 0 ? [item, ''] : [item.slice(0, equals), item.slice(equals + 1)];
    const take = RESOURCES[name.toLowerCase()];
    if (take !== undefined) take(wishes, given, line);
    else {
      wishes.siteWords.push('-l', item);
      wishes.siteOnly.push({ option: `-l ${item}`, line });
    }
  }
}

const RESOURCES: Readonly<Record<string, (wishes: Wishes, value: string, line: number) => void>> = {
  walltime: (w, v) => {
    const seconds = clockSeconds(v);
    if (seconds !== undefined) w.seconds = seconds;
  },
  ncpus: (w, v) => void (w.cpusPerTask = atLeastOne(v)),
  procs: (w, v) => void (w.tasks = atLeastOne(v)),
  mem: (w, v) => void (w.memory = { bytes: bytes(v, ''), per: 'job' }),
  vmem: (w, v) => void (w.memory ??= { bytes: bytes(v, ''), per: 'job' }),
  pmem: (w, v) => void (w.memory = { bytes: bytes(v, ''), per: 'cpu' }),
  pvmem: (w, v) => void (w.memory ??= { bytes: bytes(v, ''), per: 'cpu' }),
  ngpus: gpus,
  gpus,
  file: (w, v) => void (w.diskBytes = bytes(v, '')),
  nodes: (w, v, line) => chunks(w, v, 'nodes', line),
  select: (w, v, line) => chunks(w, v, 'select', line),
  place: (w, v) => {
    if (/\bexcl/.test(v)) w.wholeNode = true;
    w.siteWords.push('-l', `place=${v}`);
  },
};

function gpus(wishes: Wishes, value: string): void {
  wishes.gpus = count(value);
  wishes.gpusPer = 'node';
}

/** `2:ppn=4`, `4:ncpus=8:mpiprocs=2:mem=16gb`, several kinds of nodes apart by `+`, or names of nodes. */
function chunks(wishes: Wishes, value: string, word: 'nodes' | 'select', line: number): void {
  let nodes = 0;
  let names = false;
  const kinds = new Set<string>();
  for (const chunk of value.split('+')) {
    const [first = '', ...parts] = chunk.split(':');
    const named = !/^\d+$/.test(first);
    const how = named ? 1 : atLeastOne(first);
    nodes += how;
    kinds.add(parts.toSorted((a, b) => a.localeCompare(b)).join(':'));
    names ||= named;
    for (const part of parts) chunkPart(wishes, part, nodes === how);
  }
  if (names) wishes.siteOnly.push({ option: `-l ${word}=${value}`, line });
  wishes.nodes = nodes;
  wishes.unequalNodes = kinds.size > 1;
  if (nodes > 1 || !/^\d+(:(ppn|ncpus|mem|mpiprocs|ompthreads|ngpus|gpus)=\w+)*$/.test(value))
    wishes.siteWords.push('-l', `${word}=${value}`);
}

function chunkPart(wishes: Wishes, part: string, first: boolean): void {
  const [name = '', value = ''] = part.split('=');
  if (!first) return;
  if (name === 'ppn') wishes.cpusPerTask = wishes.tasksPerNode = atLeastOne(value);
  else if (name === 'ncpus') wishes.cpusPerTask = atLeastOne(value);
  else if (name === 'mem') wishes.memory = { bytes: bytes(value, ''), per: 'node' };
  else if (name === 'ngpus' || name === 'gpus') gpus(wishes, value);
  else if (name === 'mpiprocs') wishes.tasksPerNode = atLeastOne(value);
}

function attributes(wishes: Wishes, value: string): void {
  const [name = '', ...rest] = value.split('=');
  const given = rest.join('=');
  if (name === 'depend') {
    wishes.dependency = given;
    // PBS deletes a job whose dependency failed.
    wishes.removeInvalid = true;
  } else wishes.siteWords.push('-W', value);
}

function join(wishes: Wishes, value: string): void {
  const to = { oe: 'output', eo: 'error', n: 'none' } as const;
  if (value !== 'oe' && value !== 'eo' && value !== 'n') throw new BadValue(`'${value}' is not oe, eo or n`);
  wishes.join = to[value];
}

/** `a`: aborted, `b`: begins, `e`: ends. */
function mail(wishes: Wishes, value: string, written: Written): void {
  if (!/^[abenpjfs]+$/.test(value)) throw new BadValue(`'${value}' is not made of a, b, e and n`);
  if (value.includes('b')) noMailAtBegin(wishes, 'b', written);
  if (value.includes('e')) wishes.mail = value.includes('a') ? 'always' : 'end';
  else wishes.mail = /[af]/.test(value) ? 'error' : 'never';
}

export function priority(wishes: Wishes, value: string): void {
  if (!/^[+-]?\d{1,6}$/.test(value)) throw new BadValue(`'${value}' is not a priority`);
  wishes.priority = Number(value);
}

/** `/bin/bash`, `/bin/bash@host`, `host:/bin/bash`, several apart by commas: the first. */
export function shell(wishes: Wishes, value: string, written: Written): void {
  const path = (value.split(',')[0] ?? '').replace(/@.*$/, '').replace(/^[^/]*:/, '');
  if (!/^\/[^\s]+$/.test(path)) throw new BadValue(`'${path}' is not the whole path of a shell`);
  wishes.shell = { path, written };
}
