import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { GryphusError } from '../errors.ts';
import { dagDescription, type DescriptionFacts } from './description.ts';
import { loadDag, type ManagerEnvironment } from './language/load.ts';
import { diskFiles } from './local.ts';
import type { DagRun } from './manager/prepare.ts';
import type { NodeSubmit } from './manager/world.ts';
import { inDirectory } from './language/names.ts';
import { haltName, renameRescuesAfter } from './rescue.ts';
import { submissionFiles } from './submission.ts';
import { type DagOrder, limitsOfDescription } from './words.ts';

/** The program of a DAG manager, and what it needs to find its agent. */
export function managerProgram(): Pick<DescriptionFacts, 'node' | 'main' | 'environment'> {
  const home = process.env['GRYPHUS_HOME'];
  return {
    node: process.execPath,
    main: fileURLToPath(new URL('./dag-manager.js', import.meta.url)),
    environment: home === undefined ? {} : { GRYPHUS_HOME: home },
  };
}

/**
 * The options of an outer DAG that also apply to its sub-DAGs (condor_submit_dag's deep options), and the node's
 * priority.
 */
function orderOfSubdag(outer: DagRun, file: string, priority: number, first: boolean): DagOrder {
  const { useDagDir, suppressNotification, notification, outfileDir, importEnv, force } = outer;
  return {
    files: [file],
    autoRescue: outer.autoRescue ?? true,
    parentDagmanId: outer.dagmanId,
    ...(priority === 0 ? {} : { priority }),
    ...(useDagDir === true ? { useDagDir } : {}),
    ...(suppressNotification === undefined ? {} : { suppressNotification }),
    ...(notification === undefined ? {} : { notification }),
    ...(outfileDir === undefined ? {} : { outfileDir }),
    ...(importEnv === true ? { importEnv } : {}),
    ...(force === true && first ? { force } : {}),
  };
}

/**
 * Adds the names of all variables that the DAG's manager is given, so that the managers of its sub-DAGs get them too.
 */
export function withEnvironment(order: DagOrder, env: ManagerEnvironment): DagOrder {
  const includeEnv = [...new Set([...env.get, ...env.set.keys()])];
  return includeEnv.length === 0 ? order : { ...order, includeEnv };
}

/**
 * The submit description of a SUBDAG's manager; its files are made as if the inner DAG were submitted. It continues
 * from the inner DAG's last rescue file, so that a retry does only what is left. Limits in an existing description are
 * kept (`dag submit --no_submit --maxjobs 5 inner.dag` beforehand).
 */
export function subdagDescription(outer: DagRun, file: string, directory: string, request: NodeSubmit): string {
  const files = diskFiles(directory);
  if (!existsSync(inDirectory(directory, file))) {
    throw new GryphusError(
      'input-missing',
      `The DAG file ${file} of node ${request.node} does not exist in ${directory}`,
    );
  }
  const first = request.retry === 0;
  const order = orderOfSubdag(outer, file, request.priority, first);
  const { attributes, environment, settings } = loadDag([file], files, order);
  const submit = `${file}.condor.sub`;
  const limits = order.force === true ? {} : limitsOfDescription(files.read(submit) ?? '');
  files.remove(haltName(file));
  for (const made of submissionFiles(file)) files.remove(made);
  if (order.force === true && first) renameRescuesAfter(files, file, false, 0, settings.DAGMAN_MAX_RESCUE_NUM);
  const env = { set: environment.set, get: [...environment.get, ...(outer.includeEnv ?? [])] };
  const whole = withEnvironment({ ...order, limits }, env);
  const text = dagDescription(whole, { ...managerProgram(), env, attributes, append: [] });
  files.write(submit, text);
  return text;
}
