import { ownGroup } from './sacct-fields.ts';
import type { SlurmJob } from './slurm-job.ts';
import { elapsed, endsAt, outputPaths, tres } from './slurm-jobs.ts';

/** The document that squeue and sacct of Slurm 22.05 write with `--json`; fields that have no value here are left out. */
export function slurmDocument(plugin: 'openapi/v0.0.38' | 'openapi/dbv0.0.38', jobs: readonly object[]): string {
  const name = plugin === 'openapi/v0.0.38' ? 'Slurm OpenAPI v0.0.38' : 'Slurm OpenAPI DB v0.0.38';
  const document = {
    meta: {
      plugin: { type: plugin, name },
      Slurm: { version: { major: 22, micro: 8, minor: 5 }, release: '22.05.8' },
    },
    errors: [],
    jobs,
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

/** A job of `squeue --json`. */
export function squeueJson(job: SlurmJob): object {
  const { out, error } = outputPaths(job);
  const [code = 0, signal = 0] = job.exit.split(':').map(Number);
  return {
    account: job.account,
    array_job_id: job.task === undefined ? 0 : job.cluster,
    array_task_id: job.task ?? null,
    array_max_tasks: Number(/%(\d+)$/.exec(job.array)?.[1] ?? 0),
    array_task_string: '',
    batch_flag: true,
    batch_host: job.node,
    cluster: job.partition,
    command: job.command,
    comment: job.comment,
    cpus_per_task: job.cpus,
    deadline: 0,
    dependency: job.dependency,
    derived_exit_code: 0,
    eligible_time: job.submitted,
    end_time: endsAt(job) ?? 0,
    // As wait(2) encodes it.
    exit_code: code * 256 + signal,
    features: '',
    group_id: process.getgid?.() ?? 0,
    job_id: job.raw,
    job_resources: job.node === '' ? {} : { nodes: job.node, allocated_cores: job.cpus, allocated_hosts: job.nodes },
    job_state: job.state,
    name: job.name,
    nodes: job.node,
    cpus: job.cpus,
    node_count: job.nodes,
    tasks: 1,
    partition: job.partition,
    memory_per_node: job.memoryMb,
    memory_per_cpu: null,
    minimum_cpus_per_node: job.cpus,
    priority: job.priority,
    qos: '',
    requeue: false,
    restart_cnt: Math.max(0, job.starts - 1),
    start_time: job.started ?? 0,
    state_description: '',
    state_reason: job.reason,
    standard_error: error,
    standard_input: '/dev/null',
    standard_output: out,
    submit_time: job.submitted,
    time_limit: job.limit ?? null,
    tres_req_str: tres(job),
    tres_alloc_str: job.started === undefined ? '' : tres(job),
    user_id: process.getuid?.() ?? 0,
    user_name: job.user,
    current_working_directory: job.directory,
  };
}

/** A job of `sacct --json`. */
export function sacctJson(job: SlurmJob, now: number): object {
  const exit_code = exitCode(job);
  const ran = job.started !== undefined;
  const time = {
    elapsed: elapsed(job, now),
    end: job.ended ?? 0,
    start: job.started ?? 0,
    suspended: 0,
    system: seconds(job.systemCpu),
    total: seconds(job.userCpu + job.systemCpu),
    user: seconds(job.userCpu),
  };
  const noTres = { max: [], min: [], average: [], total: [] };
  const step = {
    nodes: { list: [job.node], count: job.nodes, range: job.node },
    time,
    exit_code,
    tasks: { count: 1 },
    state: job.state,
    step: { job_id: job.raw, het: { component: null }, id: 'batch', name: 'batch' },
    tres: {
      requested: noTres,
      consumed: noTres,
      allocated: counts(job, 0).filter(({ type }) => type !== 'billing'),
    },
    pid: null,
    CPU: { requested_frequency: { min: 0, max: 0 }, governor: [] },
    kill_request_user: null,
    statistics: { CPU: { actual_frequency: 0 }, energy: { consumed: 0 } },
    task: { distribution: 'Unknown' },
  };
  return {
    account: job.account,
    comment: { administrator: null, job: job.comment || null, system: null },
    allocation_nodes: ran ? job.nodes : 0,
    array: {
      job_id: job.task === undefined ? 0 : job.cluster,
      limits: { max: { running: { tasks: Number(/%(\d+)$/.exec(job.array)?.[1] ?? 0) } } },
      task: null,
      task_id: job.task ?? null,
    },
    association: { account: job.account, cluster: job.partition, partition: null, user: job.user },
    cluster: job.partition,
    constraints: '',
    container: null,
    flags: [],
    group: ownGroup(),
    het: { job_id: 0, job_offset: null },
    mcs: { label: '' },
    reservation: { id: 0, name: 0 },
    wckey: { wckey: '', flags: [] },
    derived_exit_code: { status: 'SUCCESS', return_code: 0 },
    time: { ...time, eligible: job.eligible ?? 0, submission: job.submitted, limit: job.limit ?? null },
    exit_code,
    job_id: job.raw,
    name: job.name,
    nodes: job.node === '' ? 'None assigned' : job.node,
    partition: job.partition,
    priority: job.priority,
    qos: '',
    required: { CPUs: job.cpus, memory: job.memoryMb },
    kill_request_user: null,
    state: { current: job.state, reason: job.reason },
    steps: ran ? [step] : [],
    tres: { allocated: ran ? counts(job) : [], requested: counts(job) },
    user: job.user,
    working_directory: job.directory,
  };
}

function exitCode({ exit, state }: SlurmJob): object {
  const [code = 0, signal = 0] = exit.split(':').map(Number);
  if (signal > 0) return { status: 'SIGNALED', return_code: code, signal: { signal_id: signal, name: null } };
  if (state === 'PENDING') return { status: 'PENDING', return_code: 0 };
  return { status: code === 0 ? 'SUCCESS' : 'ERROR', return_code: code };
}

function seconds(value: number): { readonly seconds: number; readonly microseconds: number } {
  const whole = Math.floor(value);
  return { seconds: whole, microseconds: Math.round((value - whole) * 1e6) };
}

interface Tres {
  readonly type: string;
  readonly name: null;
  readonly id: number;
  readonly count: number;
}

function counts({ cpus, memoryMb, nodes }: SlurmJob, memory = memoryMb): Tres[] {
  return [
    { type: 'cpu', name: null, id: 1, count: cpus },
    { type: 'mem', name: null, id: 2, count: memory },
    { type: 'node', name: null, id: 4, count: nodes },
    { type: 'billing', name: null, id: 5, count: cpus },
  ];
}
