import { BadValue, type Dialect, noMailAtBegin, type Option, type Wishes, type Written } from './model.ts';
import { priority, shell } from './pbs.ts';
import { setVariable } from './slurm.ts';
import { atLeastOne, clockSeconds, commaList, count, indices, sgeBytes } from './values.ts';

const OPTIONS: readonly Option[] = [
  { names: '-N', value: 'needed', fate: 'done', becomes: 'batch_name', take: (w, v) => void (w.name = v) },
  { names: '-l', value: 'needed', fate: 'done', becomes: 'h_rt, s_rt: batch_runtime; h_vmem, s_vmem, mem_free, virtual_free, h_rss: request_memory, times the slots; gpu: request_gpus; others as a word for the site', take: resources },
  { names: '-pe', value: 'needed', fate: 'done', becomes: 'request_cpus, and at a Grid Engine site its own word', take: parallel },
  { names: '-t', value: 'needed', fate: 'done', becomes: 'one job for each index', take: tasks },
  { names: '-tc', value: 'needed', fate: 'done', becomes: 'max_materialize', take: atOnce },
  { names: '-hold_jid', value: 'needed', fate: 'done', becomes: 'afterany: the job is held until those have ended', take: (w, v) => void (w.dependency = dependency('afterany', v)) },
  { names: '-hold_jid_ad', value: 'needed', fate: 'done', becomes: 'each task is held until the same task of the other array has ended', take: (w, v) => void (w.dependency = dependency('aftercorrany', v)) },
  { names: '-o', value: 'needed', fate: 'done', becomes: 'output, with $JOB_ID, $TASK_ID, $JOB_NAME, $USER and $HOME', take: (w, v) => void (w.output = v) },
  { names: '-e', value: 'needed', fate: 'done', becomes: 'error, like -o', take: (w, v) => void (w.error = v) },
  { names: '-i', value: 'needed', fate: 'done', becomes: 'input', take: (w, v) => void (w.input = v) },
  { names: '-j', value: 'optional', fate: 'done', becomes: 'one file for both streams', take: (w, v) => void (w.join = v === '' || yes(v) ? 'output' : 'none') },
  { names: '-m', value: 'needed', fate: 'done', becomes: 'notification; there is no mail when a job begins', take: mail },
  { names: '-M', value: 'needed', fate: 'done', becomes: 'notify_user', take: (w, v) => void (w.mailUser = v) },
  { names: '-cwd', fate: 'done', becomes: 'initialdir: where the job is submitted', take: (w) => void (w.directory = 'submit') },
  { names: '-wd', value: 'needed', fate: 'done', becomes: 'initialdir', take: (w, path) => void (w.directory = { path }) },
  { names: '-v', value: 'needed', fate: 'done', becomes: 'environment', take: (w, v) => commaList(v).forEach((one) => setVariable(w, one)) },
  { names: '-V', fate: 'done', becomes: 'getenv = true; left out at a site on another machine', take: (w) => void (w.environment = 'all') },
  { names: '-q', value: 'needed', fate: 'done', becomes: 'batch_queue at a Grid Engine site; if a site has this name, the site', take: (w, v) => void (w.queue = v) },
  { names: '-P -A', value: 'needed', fate: 'done', becomes: 'batch_project at a site of the same system; elsewhere it is only shown', take: (w, v) => void (w.project = v) },
  { names: '-h', fate: 'done', becomes: 'hold = true', take: (w) => void (w.held = true) },
  { names: '-p', value: 'needed', fate: 'done', becomes: 'priority', take: priority },
  { names: '-js', value: 'needed', fate: 'done', becomes: 'priority', take: priority },
  { names: '-S', value: 'needed', fate: 'done', becomes: 'what runs a script whose first line does not begin with #!', take: shell },
  { names: '-r', value: 'needed', fate: 'without', becomes: 'a job runs once; when a machine of the pool fails, it runs again' },
  { names: '-R -now -b -shell -w -jsv -ot', value: 'needed', fate: 'done', becomes: 'about the command or its scheduler only' },
  { names: '-terse -clear', fate: 'done', becomes: 'about the command only' },
  { names: '-notify -soft -hard', fate: 'site', becomes: '' },
  { names: '-ac -dc -sc -dl -a -ckpt -c -masterq -binding -ar', value: 'needed', fate: 'site', becomes: '' },
  { names: '-sync', value: 'needed', fate: 'without', becomes: 'use gryphus submit --wait' },
  { names: '-verify', fate: 'refused', becomes: 'use gryphus submit --dry-run' },
  { names: '-@', value: 'needed', fate: 'refused', becomes: 'write the options into the script' },
]; // biome-ignore format: a table

export const sge: Dialect = {
  system: 'sge',
  title: 'Grid Engine',
  prefix: /^#\$(?:\s+(?=-)|(?=-))/,
  atTopOnly: false,
  long: false,
  options: OPTIONS,
  environment: 'none',
  startsIn: 'home',
};

const MEMORIES = new Set(['h_vmem', 's_vmem', 'mem_free', 'virtual_free', 'h_rss', 'mem', 'vmem']);

function resources(wishes: Wishes, value: string, { line }: Written): void {
  for (const item of commaList(value)) {
    const [name = '', given = ''] = item.split('=');
    const low = name.toLowerCase();
    if (low === 'h_rt' || (low === 's_rt' && wishes.seconds === undefined)) {
      const seconds = clockSeconds(given);
      if (seconds !== undefined) wishes.seconds = seconds;
    } else if (MEMORIES.has(low)) {
      const size = sgeBytes(given);
      // Several may be given; the largest is what the job needs.
      wishes.memory = { bytes: Math.max(size, wishes.memory?.bytes ?? 0), per: 'cpu' };
      wishes.memoryInWords = true;
      wishes.siteWords.push('-l', item);
    } else if (low === 'gpu' || low === 'gpus' || low === 'ngpus') {
      wishes.gpus = count(given);
      wishes.gpusPer = 'job';
      wishes.siteWords.push('-l', item);
    } else {
      wishes.siteWords.push('-l', item);
      wishes.siteOnly.push({ option: `-l ${item}`, line });
    }
  }
}

/** `-pe mpi 8`, `-pe smp 4-8`: the parser gives both words; the least counts. */
function parallel(wishes: Wishes, value: string): void {
  const [name = '', slots = ''] = value.split(/\s+/);
  const [, least = '1'] = /^(\d*)(?:-\d*)?$/.exec(slots) ?? [];
  if (slots === '') throw new BadValue('it needs a name and a number of slots');
  wishes.cpusPerTask = atLeastOne(least === '' ? '1' : least);
  wishes.siteWords.push('-pe', name, slots);
}

/** `7` is the task 7 alone, as when one of an array is run again. */
function tasks(wishes: Wishes, value: string): void {
  const given = indices(value);
  const limit = wishes.array?.limit;
  wishes.array = { ...given, ...(limit === undefined ? {} : { limit }) };
}

function atOnce(wishes: Wishes, value: string): void {
  wishes.array = { ranges: wishes.array?.ranges ?? [], limit: atLeastOne(value) };
}

function dependency(kind: string, list: string): string {
  return commaList(list)
    .map((id) => `${kind}:${id}`)
    .join(',');
}

function mail(wishes: Wishes, value: string, written: Written): void {
  if (!/^[beasn]+$/.test(value.replaceAll(',', ''))) throw new BadValue(`'${value}' is not made of b, e, a, s and n`);
  if (value.includes('b')) noMailAtBegin(wishes, 'b', written);
  if (value.includes('e')) wishes.mail = value.includes('a') ? 'always' : 'end';
  else wishes.mail = value.includes('a') ? 'error' : 'never';
}

export function yes(value: string): boolean {
  if (/^y(es)?$/i.test(value)) return true;
  if (/^no?$/i.test(value)) return false;
  throw new BadValue(`'${value}' is neither y nor n`);
}
