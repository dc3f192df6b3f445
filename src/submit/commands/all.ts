import type { MacroTable } from '../macros.ts';
import type { Step } from '../maker.ts';
import { accounting, concurrencyLimits } from './accounting.ts';
import { amounts } from './amounts.ts';
import { args, javaArgs, toolDaemon } from './arguments.ts';
import { automatic, mistakes } from './auto.ts';
import { containerServices } from './container.ts';
import { credentials } from './credentials.ts';
import { deferral } from './deferral.ts';
import { initialDirectory } from './directory.ts';
import { environment } from './environment.ts';
import { evictChecks } from './evict.ts';
import { executable } from './executable.ts';
import { fates } from './fates.ts';
import { forcedSteps, jobSet } from './forced.ts';
import { gpuRequirements } from './gpus.ts';
import { grid } from './grid.ts';
import { nodes } from './nodes.ts';
import { hold, leaveInQueue, notification, periodic, rank } from './policy.ts';
import { outputPlaces } from './output-places.ts';
import { requirements } from './requirements.ts';
import { resourceSteps } from './resources.ts';
import { retries } from './retries.ts';
import { services } from './services.ts';
import { signals } from './signals.ts';
import { simple } from './simple.ts';
import { imageSize } from './size.ts';
import { streams } from './streams.ts';
import { transfer } from './transfer.ts';
import { universe } from './universe.ts';
import { vm } from './vm.ts';

/**
 * All commands in the order in which they must run, since later ones look at what earlier ones put into the ad. The
 * description's own attributes and resources are separate steps, so that only those that differ between jobs are run
 * again for each job.
 */
export function allSteps(macros: MacroTable, owner: string): Step[] {
  return [
    universe,
    initialDirectory,
    executable,
    args,
    grid,
    vm,
    javaArgs,
    nodes,
    environment,
    hold,
    toolDaemon,
    ...streams,
    credentials,
    notification,
    rank,
    ...periodic,
    leaveInQueue,
    retries,
    evictChecks,
    signals,
    containerServices,
    ...resourceSteps(macros),
    concurrencyLimits,
    accounting(owner),
    services,
    ...simple,
    deferral,
    imageSize,
    transfer,
    automatic,
    mistakes,
    ...forcedSteps(macros, owner),
    amounts,
    jobSet(macros),
    outputPlaces,
    ...fates(macros),
    gpuRequirements,
    requirements,
  ];
}
