import { basename } from 'node:path';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import type { Gryphus, JobId, OneJob, Submitted, SubmitRequest } from '../index.ts';
import { formatJobId, parseJobId } from '../job/ids.ts';
import { goesOn, GryphusCommand, prose } from './command.ts';
import type { RunFiles } from './run-files.ts';

export class Run extends GryphusCommand {
  static override strict = false;
  static override usage = 'run [--site <site> | --pool] [FLAGS] -- COMMAND [ARGUMENTS...]';
  static override summary = 'Run one command as a job, with its output here.';
  static override description =
    prose(`Submits COMMAND with its arguments, which arrive unchanged; shows standard output and error while it runs, and ends with its
exit status (128 + n for signal n). 125 means that there is none: the job was held or removed. The first Ctrl-C removes the
job; another within a second leaves it running, and so does closing the terminal: \`gryphus run --attach JOB\` comes back to it.

The job runs in a directory of its own, with the files of --input under their base names. Without --output, all new files
come back to the current directory. Standard input is passed on if it is a file or a pipe (read to its end first).

A COMMAND like ./sim or bin/sim is a file here, and is sent; /opt/sim is a file there. A name without a slash is looked for in
the PATH there, unless no directory of the PATH here has it and a file of this name is in the current directory.`);
  static override examples = [
    '<%= config.bin %> run -- hostname',
    '<%= config.bin %> run --site cluster1 --cpus 4 --memory 8G --time 2h --input data.csv -- ./fit data.csv',
    "zcat reads.gz | <%= config.bin %> run -- sh -c 'sort | uniq -c' >counts",
    '<%= config.bin %> run --detach --output model.bin -- ./train --epochs 10',
    '<%= config.bin %> run --attach 12',
    '<%= config.bin %> run --tty --site cluster1 --cpus 4 --time 1h -- bash',
  ];
  static override flags = {
    site: Flags.string({ helpValue: '<site>', summary: 'The site to run on.', exclusive: ['pool'] }),
    queue: Flags.string({ helpValue: '<queue>', summary: "The site's queue or partition." }),
    pool: Flags.boolean({ summary: 'Run in the pool, whatever submit.default_site says.' }),
    cpus: Flags.integer({ min: 1, helpValue: '<n>', summary: 'Cores.' }),
    memory: Flags.string({ helpValue: '<size>', summary: 'Memory: 512 (MB), 4G.' }),
    gpus: Flags.integer({ min: 0, helpValue: '<n>', summary: 'GPUs.' }),
    time: Flags.string({ helpValue: '<time>', summary: 'Time limit: 90s, 20m, 2h, 1:30:00.' }),
    input: Flags.string({ multiple: true, multipleNonGreedy: true, helpValue: '<file>', summary: 'A file to send.' }),
    output: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<file>',
      summary: 'A file to bring back.',
    }),
    env: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<name[=value]>',
      summary: 'A variable of its environment, by default with its value here.',
    }),
    stdin: Flags.boolean({
      allowNo: true,
      summary: 'Pass standard input on even from a terminal; --no-stdin: never.',
    }),
    tty: Flags.boolean({
      char: 't',
      summary: 'Run at this terminal: a shell, a debugger, an editor.',
      exclusive: ['detach', 'stdin'],
    }),
    detach: Flags.boolean({ summary: 'Return when it is submitted; its output goes to gryphus-JOB.out and .err.' }),
    attach: Flags.string({
      helpValue: '<job>',
      summary: 'Show the output of a job from its beginning, and end with its exit status.',
      exclusive: [
        'detach',
        'site',
        'queue',
        'pool',
        'cpus',
        'memory',
        'gpus',
        'time',
        'input',
        'output',
        'env',
        'stdin',
        'tty',
      ],
    }),
    json: Flags.boolean({ summary: 'With --detach: a JSON object.', dependsOn: ['detach'] }),
  };

  async run(): Promise<void> {
    const at = this.argv.indexOf('--');
    const command = at < 0 ? [] : this.argv.splice(at).slice(1);
    const { flags } = await this.parse(Run);
    if (flags.attach !== undefined) {
      if (command.length > 0) throw new GryphusError('usage', '--attach takes no command.');
      const id = parseJobId(flags.attach) ?? parseJobId(`${flags.attach}.0`);
      if (!id) throw new GryphusError('usage', `--attach: '${flags.attach}' is not a job.`);
      return this.withGryphus(flags, (gryphus) => follow(gryphus, id));
    }
    if (command.length === 0) {
      throw new GryphusError('usage', 'There is no command to run.', {
        suggestions: ['gryphus run --cpus 4 -- ./sim --steps 100'],
      });
    }
    const { oneJobs } = await import('../index.ts');
    const { describeJob, siteNamed } = await oneJobs();
    const { paths } = await this.configuration(flags);
    const job: OneJob = {
      command,
      site: await siteNamed(paths, flags.pool ? 'pool' : flags.site),
      ...(flags.queue === undefined ? {} : { queue: flags.queue }),
      ...(flags.cpus === undefined ? {} : { cpus: flags.cpus }),
      ...(flags.memory === undefined ? {} : { memory: sized(flags.memory) }),
      ...(flags.gpus === undefined ? {} : { gpus: flags.gpus }),
      ...(flags.time === undefined ? {} : { seconds: await seconds(flags.time) }),
      ...(flags.env === undefined ? {} : { env: variables(flags.env) }),
      ...(flags.input === undefined ? {} : { input: flags.input }),
      ...(flags.output === undefined ? {} : { output: flags.output }),
    };
    // What cannot be run is refused before standard input is read.
    describeJob(job);
    const { RunFiles } = await import('./run-files.ts');
    await this.withGryphus(flags, async (gryphus) => {
      const files = new RunFiles(gryphus.paths.stateDir);
      if (flags.tty) return session(gryphus, job, files);
      const stdin = await files.stdin(flags.stdin);
      const streams = flags.detach ? DETACHED : { stdout: files.stdout, stderr: files.stderr };
      const description = describeJob({ ...job, ...streams, ...(stdin === undefined ? {} : { stdin }) });
      const answer = await submitted(gryphus, description, files);
      const id = { cluster: answer.cluster, proc: 0 };
      if (!flags.detach) return follow(gryphus, id);
      const name = formatJobId(id);
      const [output, error] = [`gryphus-${name}.out`, `gryphus-${name}.err`];
      if (flags.json) process.stdout.write(`${JSON.stringify({ ...answer, output, error })}\n`);
      else process.stdout.write(`Job ${name} was submitted; its output goes to ${output} and ${error}.\n`);
    });
  }
}

const DETACHED = {
  stdout: 'gryphus-{job}.out',
  stderr: 'gryphus-{job}.err',
} as const;

async function submitted(gryphus: Gryphus, request: SubmitRequest, files: RunFiles): Promise<Submitted> {
  goesOn('Interrupted: the job was submitted, or not at all; `gryphus q` shows it.');
  const answer = await gryphus.submit(request).catch((error: unknown) => {
    files.remove();
    throw error;
  });
  for (const { message } of answer.warnings) process.stderr.write(`WARNING: ${message}\n`);
  return answer;
}

/** The job only keeps what the command, at this terminal, runs with. */
async function session(gryphus: Gryphus, job: OneJob, files: RunFiles): Promise<void> {
  const { oneJobs, sessions } = await import('../index.ts');
  const { describeJob, programOf } = await oneJobs();
  const [first = '', ...args] = job.command;
  const program = programOf(first, process.cwd());
  const holder = {
    ...job,
    command: ['/bin/sh', '-c', (await sessions()).sessionHolder()],
    input: [...(job.input ?? []), ...('here' in program ? [program.here] : [])],
    stdout: files.stdout,
    stderr: files.stderr,
  };
  const { cluster } = await submitted(gryphus, describeJob(holder), files);
  const { runSession } = await import('./session.ts');
  const command = ['here' in program ? `./${basename(program.here)}` : first, ...args];
  process.exitCode = await runSession(gryphus, { cluster, proc: 0 }, command).finally(() => files.remove());
}

async function follow(gryphus: Gryphus, id: JobId): Promise<void> {
  const { followRun } = await import('./run-follow.ts');
  process.exitCode = await followRun(gryphus, id);
}

function sized(memory: string): string {
  if (/^\d+(\.\d+)?\s*([KMGT]i?)?B?$/i.test(memory)) return memory.replaceAll(/i?B$/gi, '').replace(/i$/i, '');
  throw new GryphusError('usage', `--memory: '${memory}' is not an amount of memory.`, {
    suggestions: ['--memory 4G'],
  });
}

/** Slurm's and PBS's `[D-]H:M:S`, and the configuration's `1h30m`. */
async function seconds(time: string): Promise<number> {
  const clock = /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$/.exec(time);
  if (clock) {
    const [days = 0, hours = 0, minutes = 0, left = 0] = clock.slice(1).map((one) => Number(one ?? 0));
    return ((days * 24 + hours) * 60 + minutes) * 60 + left;
  }
  const { kinds } = await import('../index.ts');
  const read = (await kinds()).duration.read(time);
  if (read !== undefined && read >= 1) return Math.ceil(read);
  throw new GryphusError('usage', `--time: '${time}' is not a time of at least a second.`, {
    suggestions: ['Write 90s, 20m, 2h or 1:30:00 (hours, minutes, seconds).'],
  });
}

function variables(given: readonly string[]): Record<string, string> {
  const entries = given.map((one) => {
    const [, name = '', value] = /^([^=]+)(?:=(.*))?$/s.exec(one) ?? [];
    const all = value ?? process.env[name];
    if (name !== '' && all !== undefined) return [name, all] as const;
    throw new GryphusError('usage', `--env ${one}: there is no such variable here.`, {
      suggestions: ['--env NAME=VALUE'],
    });
  });
  return Object.fromEntries(entries);
}
