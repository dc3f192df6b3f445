import { secondsOf } from '../calculate.ts';
import { shellWords } from '../../util/shell-words.ts';
import type { JobMaker, Step } from '../maker.ts';
import { setCloud } from './cloud.ts';
import { UNIVERSE } from '../../job/universe.ts';

/** Names in a batch system, in which quotes would be taken for part of the name. */
const NAMES: readonly (readonly [command: string, attribute: string])[] = [
  ['batch_project', 'BatchProject'],
  ['batch_queue', 'BatchQueue'],
];

const STRINGS: readonly (readonly [command: string, attribute: string])[] = [
  ['arc_rte', 'ArcRte'],
  ['arc_resources', 'ArcResources'],
  ['arc_application', 'ArcApplication'],
  ['arc_data_staging', 'ArcDataStaging'],
  ['globus_rsl', 'GlobusRSL'],
];

function setResource(job: JobMaker): void {
  const resource = job.param('grid_resource', 'GridResource');
  if (resource === undefined) return;
  job.setString('GridResource', resource);
  if (resource.toLowerCase() === 'ec2') throw job.fault('grid_resource', 'EC2 grid jobs require a service URL');
  job.gridType = (resource.split(' ')[0] ?? '').toLowerCase();
}

function setName(job: JobMaker, command: string, attribute: string): void {
  const value = job.param(command, attribute);
  if (value === undefined) return;
  const [, , bare] = /^(["'])(.*)\1$/s.exec(value) ?? [];
  if (bare !== undefined) {
    throw job.fault(command, `${command} = ${value}: the quotes would be part of the name`, [
      `Write ${command} = ${bare}`,
    ]);
  }
  job.setString(attribute, value);
}

function setRuntime(job: JobMaker): void {
  const text = job.param('batch_runtime', 'BatchRuntime');
  if (text === undefined) return;
  const seconds = secondsOf(text);
  if (seconds !== undefined) return job.setInt('BatchRuntime', seconds);
  job.setExpr('BatchRuntime', text, 'batch_runtime', 'Write seconds, or a time like 45m, 2h, 1h30m or 7d.');
}

function setExtra(job: JobMaker): void {
  const message = job.param('batch_extra_submit_args', 'BatchExtraSubmitArgs');
  if (message === undefined) return;
  if (shellWords(message) === undefined) {
    throw job.fault('batch_extra_submit_args', `batch_extra_submit_args = ${message}: a quote is not closed`, [
      'Words are split at blanks, and quotes keep one together, as in a shell.',
    ]);
  }
  job.setString('BatchExtraSubmitArgs', message);
}

/** Where a grid job runs, and what its batch system is told; how long a job may run, in the pool too. */
export const grid: Step = {
  name: 'grid_resource',
  run(job) {
    setRuntime(job);
    if (job.kind.universe !== UNIVERSE.grid && job.gridType === '') return;
    setResource(job);
    for (const [command, attribute] of STRINGS) {
      const value = job.param(command, attribute);
      if (value !== undefined) job.setString(attribute, value);
    }
    for (const [command, attribute] of NAMES) setName(job, command, attribute);
    setExtra(job);
    setCloud(job);
  },
};
