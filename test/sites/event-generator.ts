import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GatekeeperOptions, mayMount } from './gatekeeper.ts';

const GENERATOR = '/usr/sbin/globus-scheduler-event-generator';
const MODULE = '/etc/globus/scheduler-event-generator/available/fork';

/** A fork service for which Globus' event generator reports the ends of jobs, instead of a poll every ten seconds. */
export interface Events {
  readonly gatekeeper: GatekeeperOptions;
  stop(): void;
}

/**
 * `undefined` if its packages are not installed, or if its files, which have one place on a machine, cannot be our own.
 */
export function eventGenerator(): Events | undefined {
  if (!existsSync(GENERATOR) || !existsSync(MODULE) || !mayMount()) return undefined;
  const dir = mkdtempSync(join(tmpdir(), 'gse-'));
  const [etc, lib, events] = [join(dir, 'etc'), join(dir, 'lib'), join(dir, 'lib/globus-seg-fork')] as const;
  for (const one of [etc, lib, events]) mkdirSync(one);
  chmodSync(events, 0o1777);
  writeFileSync(join(dir, 'log'), '');
  // A job manager that finds no file of the day looks again after half a minute.
  writeFileSync(join(events, new Date().toISOString().slice(0, 10).replaceAll('-', '')), '');
  adapterFiles(etc, { 'globus-fork.conf': `log_path="${dir}/log"\nmpiexec="no"\nmpirun="no"\nsoftenv_dir=""\n` });
  return {
    gatekeeper: {
      services: { 'jobmanager-fork': '-type fork -seg-module fork' },
      mounts: { '/etc/globus': etc, '/var/lib/globus': lib },
      beside: [[GENERATOR, '-s', 'fork', '-d', events, '-p', join(dir, 'pid')]],
    },
    stop: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** The machine's configuration of Globus' adapters in another directory, except for these files. */
export function adapterFiles(etc: string, files: Readonly<Record<string, string>>): void {
  for (const name of readdirSync('/etc/globus').filter((one) => one.endsWith('.conf')))
    writeFileSync(join(etc, name), readFileSync(join('/etc/globus', name)));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(etc, name), text);
}
