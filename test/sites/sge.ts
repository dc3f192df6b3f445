import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync, chmodSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readPid } from '../../src/util/pid-file.ts';
import { freePorts } from './ports.ts';
import { removeTree } from '../remove-tree.ts';

/** A private Grid Engine cell on loopback (qmaster, one execution daemon), run by the user who runs the test. */
export interface Sge {
  /** What a program needs to talk to it. */
  readonly env: Readonly<Record<string, string>>;
  readonly dir: string;
  /** Runs a Grid Engine command to completion; returns its standard output. Throws if it fails. */
  run(command: string, ...args: string[]): string;
  stop(): Promise<void>;
}

const PROGRAMS = '/usr/lib/gridengine';
const SHARE = '/usr/share/gridengine';

/** For `describe.skipIf`: prints a line if Grid Engine is missing; with CI=true it is an error instead. */
export function skipWithoutSge(): boolean {
  if (existsSync(join(PROGRAMS, 'sge_qmaster')) || existsSync('/usr/sbin/sge_qmaster')) return false;
  const missing = 'Grid Engine is not installed (Debian: gridengine-master, gridengine-exec, gridengine-client)';
  if (process.env['CI'] === 'true') throw new Error(missing);
  process.stderr.write(`Tests with Grid Engine are left out. ${missing}\n`);
  return true;
}

/** `userJobs`: how many jobs one user may have in it. */
export async function startSge(options: { slots?: number; userJobs?: number } = {}): Promise<Sge> {
  const dir = mkdtempSync('/tmp/gge-');
  chmodSync(dir, 0o755);
  const port = await freePorts(2);
  const env = {
    SGE_ROOT: dir,
    SGE_CELL: 'default',
    SGE_QMASTER_PORT: String(port),
    SGE_EXECD_PORT: String(port + 1),
    SGE_ARCH: 'lx-amd64',
    PATH: `${PROGRAMS}:${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`,
  };
  const run = (command: string, ...args: string[]): string =>
    execFileSync(command, args, {
      encoding: 'utf8',
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  bootstrap(dir, run, options.userJobs ?? 0);
  run('sge_qmaster');
  await until(() => succeeds(() => run('qconf', '-sh')), 'qmaster does not answer');
  configure(dir, run, options.slots ?? 8);
  run('sge_execd');
  // It is ready when its queue has a load and no letter for an unknown state.
  await until(() => /^main\.q@\S+ +\S+ +\S+ +[\d.]+ +\S+ *$/m.test(run('qstat', '-f')), 'execd does not answer');

  return {
    env,
    dir,
    run,
    async stop() {
      try {
        run('qdel', '-u', userInfo().username);
      } catch {
        // There is nothing to delete.
      }
      await until(() => !run('qstat', '-u', '*', '-s', 'rs').includes('gryphus'), 'jobs still run').catch(() => {});
      for (const name of ['execd/localhost/execd.pid', 'qmaster/qmaster.pid']) {
        const pid = readPid(join(dir, 'default/spool', name));
        if (pid === undefined) continue;
        process.kill(pid, 'SIGKILL');
        await until(() => !existsSync(`/proc/${pid}/exe`), `${name} still lives`);
      }
      await removeTree(dir);
    },
  };
}

/** A cell with classic spooling; every name of this host is one host `localhost`, so that look-ups agree. */
function bootstrap(dir: string, run: Sge['run'], userJobs: number): void {
  const common = join(dir, 'default/common');
  const qmaster = join(dir, 'default/spool/qmaster');
  const execd = join(dir, 'default/spool/execd');
  for (const sub of [common, join(qmaster, 'job_scripts'), execd]) mkdirSync(sub, { recursive: true });
  for (const sub of ['bin', 'lib', 'utilbin']) {
    mkdirSync(join(dir, sub));
    symlinkSync(PROGRAMS, join(dir, sub, 'lx-amd64'));
  }
  symlinkSync(join(SHARE, 'util'), join(dir, 'util'));
  writeFileSync(join(common, 'act_qmaster'), 'localhost\n');
  const known = execFileSync('sh', ['-c', 'getent hosts 127.0.0.1 || :'], { encoding: 'utf8' }).trim().split(/\s+/);
  const names = new Set([hostname(), hostname().split('.')[0], ...known.slice(1)]);
  names.delete('localhost');
  writeFileSync(join(common, 'host_aliases'), `localhost ${[...names].join(' ')}\n`);
  const user = userInfo().username;
  writeFileSync(
    join(common, 'bootstrap'),
    `Version: 6.2
admin_user ${user}
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params ${common};${qmaster}
binary_path ${dir}/bin
qmaster_spool_dir ${qmaster}
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
`,
  );
  const configuration = join(dir, 'configuration');
  writeFileSync(
    configuration,
    changed(readFileSync(join(SHARE, 'default-configuration'), 'utf8'), {
      execd_spool_dir: execd,
      mailer: '/bin/true',
      xterm: 'none',
      load_report_time: '00:00:05',
      max_unsupported_requests: '00:00:30',
      min_uid: '0',
      min_gid: '0',
      reporting_params:
        'accounting=true reporting=false flush_time=00:00:01 accounting_flush_time=00:00:00 joblog=false sharelog=00:00:00',
      administrator_mail: 'none',
      max_u_jobs: String(userJobs),
      execd_params: 'ENABLE_ADDGRP_KILL=TRUE',
    }),
  );
  run('spoolinit', 'classic', 'libspoolc', `${common};${qmaster}`, 'init');
  run('spooldefaults', 'configuration', configuration);
  run('spooldefaults', 'complexes', join(SHARE, 'util/resources/centry'));
  run('spooldefaults', 'usersets', join(SHARE, 'util/resources/usersets'));
  run('spooldefaults', 'managers', user);
  run('spooldefaults', 'adminhosts', 'localhost');
  run('spooldefaults', 'submithosts', 'localhost');
}

/** Parallel environments, by their rules. */
const ENVIRONMENTS = { smp: '$pe_slots', mpi: '$fill_up', 'by-two': '2' } as const;

/** A quick scheduler, the queues main.q and short.q (2 minutes), the parallel environments. */
function configure(dir: string, run: Sge['run'], slots: number): void {
  run('qconf', '-as', 'localhost');
  const from = (option: string, name: string, content: string): void => {
    writeFileSync(join(dir, name), content);
    run('qconf', option, join(dir, name));
  };
  const none = [
    'complex_values',
    'user_lists',
    'xuser_lists',
    'projects',
    'xprojects',
    'usage_scaling',
    'report_variables',
  ];
  from('-Ae', 'host', `hostname localhost\nload_scaling NONE\n${none.map((name) => `${name} NONE\n`).join('')}`);
  from(
    '-Msconf',
    'scheduler',
    changed(run('qconf', '-ssconf'), {
      schedule_interval: '0:0:1',
      flush_submit_sec: '1',
      flush_finish_sec: '1',
      load_formula: 'slots',
      job_load_adjustments: 'NONE',
      schedd_job_info: 'true',
      maxujobs: '0',
    }),
  );
  for (const [name, rule] of Object.entries(ENVIRONMENTS)) {
    from(
      '-Ap',
      name,
      `pe_name ${name}\nslots 9999\nuser_lists NONE\nxuser_lists NONE\nstart_proc_args NONE\nstop_proc_args NONE\nallocation_rule ${rule}\ncontrol_slaves FALSE\njob_is_first_task TRUE\nurgency_slots min\naccounting_summary FALSE\nqsort_args NONE\n`,
    );
  }
  for (const [qname, limit] of [
    ['main.q', 'INFINITY'],
    ['short.q', '0:2:0'],
  ] as const) {
    const settings = {
      qname,
      hostlist: 'localhost',
      slots: String(slots),
      pe_list: Object.keys(ENVIRONMENTS).join(' '),
      load_thresholds: 'NONE',
      shell: '/bin/sh',
      shell_start_mode: 'unix_behavior',
      h_rt: limit,
      rerun: 'FALSE',
      tmpdir: '/tmp',
    };
    from('-Aq', qname, changed(run('qconf', '-sq'), settings));
  }
}

/** Lines `NAME VALUE`, with some of the values replaced. */
function changed(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/^(\w+)( +).*$/gm, (line, name: string, blanks: string) =>
    values[name] === undefined ? line : `${name}${blanks}${values[name]}`,
  );
}

function succeeds(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

async function until(holds: () => boolean, otherwise: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(otherwise);
    await delay(50);
  }
}
