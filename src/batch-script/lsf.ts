import { BadValue, type Dialect, type Option, type Wishes, type Written } from './model.ts';
import { setVariable } from './slurm.ts';
import { atLeastOne, bytes, commaList, indices, lsfSeconds } from './values.ts';

const OPTIONS: readonly Option[] = [
  { names: '-J', value: 'needed', fate: 'done', becomes: 'batch_name; name[1-10]%2: one job for each index, max_materialize', take: name },
  { names: '-W', value: 'needed', fate: 'done', becomes: 'batch_runtime; in the pool a job that runs longer is stopped and held', take: (w, v) => void (w.seconds = lsfSeconds(v)) },
  { names: '-n', value: 'needed', fate: 'done', becomes: 'request_cpus', take: slots },
  { names: '-nnodes', value: 'needed', fate: 'done', becomes: 'more than one: at an LSF site its own word; elsewhere machine_count', take: nodes },
  { names: '-M', value: 'needed', fate: 'done', becomes: 'request_memory; a bare number is KB', take: (w, v) => void (w.memory = { bytes: bytes(v, 'k'), per: 'job' }) },
  { names: '-R', value: 'needed', fate: 'done', becomes: 'rusage[mem=MB]: request_memory; rusage[ngpus_physical=N]: request_gpus; the whole as a word for the site', take: requirement },
  { names: '-gpu', value: 'needed', fate: 'done', becomes: 'num=N: request_gpus; the whole as a word for the site', take: gpu },
  { names: '-q', value: 'needed', fate: 'done', becomes: 'batch_queue at an LSF site; if a site has this name, the site', take: (w, v) => void (w.queue = v) },
  { names: '-P', value: 'needed', fate: 'done', becomes: 'batch_project at a site of the same system; elsewhere it is only shown', take: (w, v) => void (w.project = v) },
  { names: '-w', value: 'needed', fate: 'done', becomes: 'done, ended, exit and started of a job, joined by &&: as for Slurm', take: condition },
  { names: '-ti', fate: 'done', becomes: 'a job whose dependency can no longer be met is removed', take: (w) => void (w.removeInvalid = true) },
  { names: '-o -oo', value: 'needed', fate: 'done', becomes: 'output, with %J and %I', take: (w, v) => void (w.output = v) },
  { names: '-e -eo', value: 'needed', fate: 'done', becomes: 'error, like -o', take: (w, v) => void (w.error = v) },
  { names: '-i -is', value: 'needed', fate: 'done', becomes: 'input', take: (w, v) => void (w.input = v) },
  { names: '-u', value: 'needed', fate: 'done', becomes: 'notify_user', take: (w, v) => void (w.mailUser = v) },
  { names: '-N -Ne', fate: 'done', becomes: 'notification = Complete', take: (w) => void (w.mail = 'end') },
  { names: '-B', fate: 'without', becomes: 'there is no mail when a job begins' },
  { names: '-cwd', value: 'needed', fate: 'done', becomes: 'initialdir', take: (w, path) => void (w.directory = { path }) },
  { names: '-env', value: 'needed', fate: 'done', becomes: 'getenv and environment', take: environment },
  { names: '-H', fate: 'done', becomes: 'hold = true', take: (w) => void (w.held = true) },
  { names: '-sp', value: 'needed', fate: 'done', becomes: 'priority', take: (w, v) => void (w.priority = atLeastOne(v)) },
  { names: '-x', fate: 'done', becomes: '+WholeNodes = true', take: (w) => void (w.wholeNode = true) },
  { names: '-Jd', value: 'needed', fate: 'done', becomes: '+JobDescription', take: (w, v) => void (w.comment = v) },
  { names: '-r -rn', fate: 'without', becomes: 'a job runs once; when a machine of the pool fails, it runs again' },
  { names: '-L', value: 'needed', fate: 'without', becomes: "the script's first line names its shell" },
  { names: '-K', fate: 'without', becomes: 'use gryphus submit --wait' },
  { names: '-I -Ip -Is -IS -ISp -ISs -IX -XF -tty', fate: 'refused', becomes: 'a shell in a job is opened by `gryphus run --tty -- bash`' },
  { names: '-Nd', fate: 'done', becomes: 'notification = Never', take: (w) => void (w.mail = 'never') },
  { names: '-ul -hl', fate: 'site', becomes: '' },
  { names: '-app -G -m -C -D -F -T -S -v -p -U -b -t -E -Ep -f -g -sla -k -freq -network -Lp -ext -a -We -c -Q -s -A -ptl -eptl -wt -wa -mig -rnc -outdir -hostfile -notify -rcacct -clusters -data -datagrp -stage -jsm -csm -alloc_flags -core_isolation -step_cgroup -smt -cn_cu -cn_mem -ln_slots -ln_mem', value: 'needed', fate: 'site', becomes: '' },
]; // biome-ignore format: a table

export const lsf: Dialect = {
  system: 'lsf',
  title: 'LSF',
  prefix: /^#BSUB(?:\s+|$)/,
  atTopOnly: false,
  long: false,
  options: OPTIONS,
  environment: 'all',
  startsIn: 'submit',
};

function name(wishes: Wishes, value: string): void {
  const [, plain = '', list, limit] = /^([^[\]]*)(?:\[([^\]]*)\](%\d+)?)?$/.exec(value) ?? [];
  if (plain === '' && list === undefined) throw new BadValue(`'${value}' is not a job's name`);
  wishes.name = plain;
  if (list !== undefined) wishes.array = indices(`${list}${limit ?? ''}`);
}

/** `4`, `4,8`: at least and at most. */
function slots(wishes: Wishes, value: string): void {
  wishes.cpusPerTask = atLeastOne(value.split(',')[0] ?? '');
  if (value.includes(',')) wishes.siteWords.push('-n', value);
}

function nodes(wishes: Wishes, value: string): void {
  wishes.nodes = atLeastOne(value);
  wishes.siteWords.push('-nnodes', value);
}

function requirement(wishes: Wishes, value: string, written: Written): void {
  wishes.siteWords.push('-R', value);
  const rusage = /rusage\[([^\]]*)\]/.exec(value)?.[1] ?? '';
  const memory = /\bmem=(\d+(?:\.\d+)?[KMGTkmgt]?[Bb]?)/.exec(rusage)?.[1];
  if (memory !== undefined) {
    wishes.memory = { bytes: bytes(memory, 'm'), per: 'job' };
    wishes.memoryInWords = true;
  }
  const gpus = /\b(?:ngpus_physical|ngpus_excl_p|ngpus)=(\d+)/.exec(rusage)?.[1];
  if (gpus !== undefined) wishes.gpus = Number(gpus);
  const rest = value
    .replaceAll(/rusage\[\s*(?:(?:mem|ngpus_physical|ngpus_excl_p|ngpus)=[\w.]+[,:\s]*)*\]/g, '')
    .replaceAll(/span\[(?:hosts=1|ptile=\d+)\]/g, '')
    .trim();
  if (rest !== '') wishes.siteOnly.push(written);
}

function gpu(wishes: Wishes, value: string): void {
  wishes.gpus = Number(/\bnum=(\d+)/.exec(value)?.[1] ?? 1);
  wishes.siteWords.push('-gpu', value);
}

const KINDS: Readonly<Record<string, string>> = {
  done: 'afterok',
  ended: 'afterany',
  exit: 'afternotok',
  started: 'after',
};

/** `done(12) && ended("name")`; `||` and comparisons of counts are not understood. */
function condition(wishes: Wishes, value: string): void {
  const parts = value.split('&&').map((one) => one.trim());
  wishes.dependency = parts
    .map((part) => {
      const [, kind = 'done', id] = /^(?:(done|ended|exit|started)\s*\(\s*)?"?([^"()|,\s]+)"?\s*\)?$/.exec(part) ?? [];
      if (id === undefined) throw new BadValue(`'${part}' is not done, ended, exit or started of one job`);
      return `${KINDS[kind]}:${id}`;
    })
    .join(',');
}

function environment(wishes: Wishes, value: string): void {
  const items = commaList(value).map((one) => one.trim());
  wishes.environment = items.includes('all') ? 'all' : 'none';
  for (const item of items) if (item !== 'all' && item !== 'none' && !item.startsWith('~')) setVariable(wishes, item);
}
