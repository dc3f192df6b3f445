import type { JobMaker, Step } from '../maker.ts';
import { setCloud } from './cloud.ts';
import { UNIVERSE } from './universe.ts';

const STRINGS: readonly (readonly [command: string, attribute: string])[] = [
  ['arc_rte', 'ArcRte'],
  ['arc_resources', 'ArcResources'],
  ['arc_application', 'ArcApplication'],
  ['arc_data_staging', 'ArcDataStaging'],
  ['batch_extra_submit_args', 'BatchExtraSubmitArgs'],
  ['batch_project', 'BatchProject'],
  ['batch_queue', 'BatchQueue'],
  ['globus_rsl', 'GlobusRSL'],
];

function setResource(job: JobMaker): void {
  const resource = job.param('grid_resource', 'GridResource');
  if (resource === undefined) return;
  job.setString('GridResource', resource);
  if (resource.toLowerCase() === 'ec2') throw job.fault('grid_resource', 'EC2 grid jobs require a service URL');
  job.gridType = (resource.split(' ')[0] ?? '').toLowerCase();
}

/** Where a grid job runs, and what its batch system is told. */
export const grid: Step = {
  name: 'grid_resource',
  run(job) {
    if (job.kind.universe !== UNIVERSE.grid) return;
    setResource(job);
    for (const [command, attribute] of STRINGS) {
      const value = job.param(command, attribute);
      if (value !== undefined) job.setString(attribute, value);
    }
    const runtime = job.param('batch_runtime', 'BatchRuntime');
    if (runtime !== undefined) job.setExpr('BatchRuntime', runtime, 'batch_runtime');
    setCloud(job);
  },
};
