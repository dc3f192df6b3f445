import type { AdText, Gryphus, JobId, JobView, QueryRequest } from '../../index.ts';
import { expand } from './array-indices.ts';
import { Refused } from './options.ts';
import { ATTRIBUTES, JOB_NUMBERS, SlurmJob } from './slurm-job.ts';
import { UnmadeTasks } from './unmade-tasks.ts';

/** A job, a whole array, or one task of it; or a step of them. */
export interface Named {
  readonly cluster: number;
  readonly tasks?: ReadonlySet<number>;
  readonly step?: string;
  readonly text: string;
}

/**
 * `12`, `12_3`, `12_[1-3,7]`, an array job's number, and steps (`12.batch`), apart by commas. `wrong`: the error for a word
 * that is none of these.
 */
export function namedJobs(list: string, wrong = (word: string) => new Refused(`Invalid job id ${word}`)): Named[] {
  return list
    .split(/,(?![^[]*\])/)
    .filter((one) => one !== '')
    .map((text) => {
      const [, cluster, one, range, step] =
        /^(\d{1,15})(?:_(?:(\d{1,8})|\[([\d,\-%:]+)\]))?(?:\.(\w+))?$/.exec(text) ?? [];
      if (cluster === undefined) throw wrong(text);
      const number = Number(cluster);
      const inArray = one === undefined && range === undefined && number >= JOB_NUMBERS;
      const task = inArray ? number % JOB_NUMBERS : one === undefined ? undefined : Number(one);
      const tasks = task === undefined ? range && expand(range) : new Set([task]);
      return {
        cluster: inArray ? Math.floor(number / JOB_NUMBERS) : number,
        ...(tasks ? { tasks } : {}),
        ...(step === undefined ? {} : { step }),
        text,
      };
    });
}

export function isNamed(job: SlurmJob, named: readonly Named[] | undefined): boolean {
  return isNamedTask(named, job.cluster, job.task ?? 0);
}

function isNamedTask(named: readonly Named[] | undefined, cluster: number, task: number): boolean {
  return (
    named === undefined ||
    named.some((one) => one.cluster === cluster && (one.tasks === undefined || one.tasks.has(task)))
  );
}

/** Jobs in the queue, or wherever they are. */
export async function* slurmJobs(
  gryphus: Gryphus,
  named: readonly Named[] | undefined,
  where: 'queue' | 'everywhere',
  selection: QueryRequest = {},
): AsyncGenerator<SlurmJob> {
  for await (const jobs of slurmJobChunks(gryphus, named, where, selection)) yield* jobs;
}

/** The same in chunks, for long lists. `joined`: one job for all tasks of an array that wait for its limit. */
export async function* slurmJobChunks(
  gryphus: Gryphus,
  named: readonly Named[] | undefined,
  where: 'queue' | 'everywhere',
  selection: QueryRequest = {},
  joined = false,
): AsyncGenerator<readonly SlurmJob[]> {
  const clusters = named && [...new Set(named.map(({ cluster }) => cluster))];
  const request = {
    attributes: ATTRIBUTES,
    ...selection,
    ...(clusters && { clusters }),
  };
  if (where === 'queue') {
    const few = named && (await fewTasks(gryphus, named));
    if (few) return yield few;
  }
  const unmade = await UnmadeTasks.count(gryphus, clusters);
  if (where === 'queue') {
    for await (const some of gryphus.queryChunks(request)) {
      const jobs = jobsOf(some);
      for (const job of jobs) unmade.see(job);
      yield named === undefined ? jobs : jobs.filter((job) => isNamed(job, named));
    }
  } else {
    for await (const view of gryphus.jobs(request)) {
      const job = new SlurmJob(view.id, view.ad);
      unmade.see(job);
      if (isNamed(job, named)) yield [job];
    }
  }
  if (joined) for await (const job of unmade.joined((...one) => isNamedTask(named, ...one))) yield [job];
  else
    for await (const jobs of unmade.rest(where === 'everywhere'))
      yield named === undefined ? jobs : jobs.filter((job) => isNamed(job, named));
}

/** What is the same for jobs with the same ad is read once. */
function jobsOf(views: readonly JobView[]): SlurmJob[] {
  const known = new Map<AdText, SlurmJob>();
  return views.map(({ id, ad }) => {
    const like = known.get(ad);
    const job = new SlurmJob(id, ad, undefined, undefined, like);
    if (!like) known.set(ad, job);
    return job;
  });
}

/** More tasks are not looked for one by one. */
const FEW = 20;

/** The tasks that are named, if these are few and all are where their array's indices say: the array is not read. */
async function fewTasks(gryphus: Gryphus, named: readonly Named[]): Promise<readonly SlurmJob[] | undefined> {
  const wanted = named.flatMap(({ cluster, tasks }) =>
    tasks === undefined || tasks.size > FEW ? [undefined] : [...tasks].map((task) => ({ cluster, task })),
  );
  const ids: JobId[] = [];
  const arrays = new Map<number, readonly number[]>();
  for (const one of wanted) {
    if (one === undefined || ids.length === FEW) return undefined;
    const { cluster, task } = one;
    if (!arrays.has(cluster)) arrays.set(cluster, await indicesOf(gryphus, cluster));
    const indices = arrays.get(cluster) ?? [];
    const proc = indices.length === 0 ? task : indices.indexOf(task);
    if (proc < 0) return undefined;
    ids.push({ cluster, proc });
  }
  const found: SlurmJob[] = [];
  for await (const { id, ad } of gryphus.query({ ids, attributes: ATTRIBUTES })) found.push(new SlurmJob(id, ad));
  const right = found.length === ids.length && found.every((job) => isNamed(job, named));
  return right ? found : undefined;
}

/** The indices of an array by its jobs' procs; none: they are the procs. */
async function indicesOf(gryphus: Gryphus, cluster: number): Promise<readonly number[]> {
  for await (const { id, ad } of gryphus.query({ clusters: [cluster], attributes: ['GryphusArray'], limit: 1 })) {
    const { array } = new SlurmJob(id, ad);
    return array === '' ? [] : [...expand(array)];
  }
  return [];
}

/** `1-02:03:04`, `5:06`. */
export function duration(seconds: number, hours = false): string {
  const [d, h, m, s] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  const two = (n: number) => String(n).padStart(2, '0');
  if (d > 0) return `${d}-${two(h)}:${two(m)}:${two(s)}`;
  return h > 0 || hours ? `${hours ? two(h) : h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

export function moment(seconds: number | undefined, none: string): string {
  if (seconds === undefined || seconds === 0) return none;
  const date = new Date(seconds * 1000);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** As ctime(3) writes it, in the local time. */
export function ctime(seconds: number): string {
  const at = new Date(seconds * 1000);
  const [day, month] = [at.toLocaleString('en', { weekday: 'short' }), at.toLocaleString('en', { month: 'short' })];
  const two = (n: number) => String(n).padStart(2, '0');
  return `${day} ${month} ${String(at.getDate()).padStart(2)} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${at.getFullYear()}`;
}

/** When it ended, or must end. */
export function endsAt({ started, ended, limit }: SlurmJob): number | undefined {
  return ended ?? (started === undefined || limit === undefined ? undefined : started + limit * 60);
}

/** Absolute names of its standard output and error. */
export function outputPaths({ output, error, directory }: SlurmJob): { readonly out: string; readonly error: string } {
  const whole = (file: string) => (file === '' || file.startsWith('/') ? file : `${directory}/${file}`);
  return { out: whole(output), error: whole(error || output) };
}

/** `cpu=1,mem=100M,node=1,billing=1`, in the order of squeue and scontrol. */
export function tres({ cpus, gpus, memoryMb, nodes }: SlurmJob): string {
  const gpu = gpus === 0 ? '' : `,gres/gpu=${gpus}`;
  return `cpu=${cpus},mem=${memoryMb}M,node=${nodes},billing=${cpus}${gpu}`;
}

export function elapsed({ started, ended }: SlurmJob, now: number): number {
  return started === undefined ? 0 : Math.max(0, (ended ?? now) - started);
}
