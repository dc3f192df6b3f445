import { accessSync, constants, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Paths } from '../config/paths.ts';
import {
  applyRescue,
  claimSubmission,
  dagDescription,
  type DagFiles,
  type DagOrder,
  diskFiles,
  inOrder,
  lastRescue,
  limitsOfDescription,
  lintDag,
  loadDag,
  type LoadedDag,
  managerProgram,
  type Problem,
  refusal,
  rescueName,
  subdagCycles,
  type SubmissionOptions,
  submissionFiles,
  withEnvironment,
} from '../dag/api.ts';
import { GryphusError } from '../errors.ts';
import { submitCluster } from '../enqueue/enqueue.ts';
import type { Queue } from '../queue/api.ts';
import { isSubmitCommand, parseEnvQuotedOrV1 } from '../submit/api.ts';
import type { DagSubmitRequest } from './dag-types.ts';

/** A DAG ready to submit: it has been read and checked, and its files are claimed. */
export interface ReadyDag {
  /** The path of `NAME.dag.condor.sub`. */
  readonly file: string;
  readonly text: string;
  readonly warnings: readonly Problem[];
}

/**
 * Reads a DAG, refuses it if it has errors before anything runs, and writes the submit description of its manager.
 * Throws a GryphusError 'dag-refused' with file and line.
 */
export function readyDag(request: DagSubmitRequest, cwd: string): ReadyDag {
  const files = diskFiles(cwd);
  const { order } = request;
  const options: SubmissionOptions = { force: request.force === true, updateSubmit: request.updateSubmit === true };
  const { loaded, problems } = checkDag(order, files, cwd, options.force === true);
  if (problems.some((problem) => problem.severity === 'error')) throw refusal(problems);
  const most = loaded.settings.DAGMAN_MAX_RESCUE_NUM;
  claimSubmission({ ...order, dagmanId: 0, version: '' }, options, files, most);
  const primary = order.files[0] ?? '';
  const file = `${primary}.condor.sub`;
  const kept = options.updateSubmit === true ? limitsOfDescription(files.read(file) ?? '') : {};
  for (const old of submissionFiles(primary)) files.remove(old);
  const set = new Map([...insertedEnv(request.insertEnv ?? []), ...loaded.environment.set]);
  const env = { set, get: [...(request.includeEnv ?? []), ...loaded.environment.get] };
  const limits = { ...kept, ...order.limits };
  const whole = withEnvironment({ ...order, limits, ...(options.force === true ? { force: true } : {}) }, env);
  const text = dagDescription(whole, {
    ...managerProgram(),
    env,
    attributes: loaded.attributes,
    append: request.append ?? [],
  });
  files.write(file, text);
  return { file, text, warnings: problems };
}

function insertedEnv(lines: readonly string[]): readonly (readonly [string, string])[] {
  return lines.flatMap((line) => {
    const parsed = parseEnvQuotedOrV1(line.trim());
    if (!parsed.ok) throw new GryphusError('usage', `--insert_env ${line}: ${parsed.reason}`);
    return [...parsed.value].flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  });
}

export async function enqueueDag(
  queue: Queue,
  paths: Paths,
  owner: string,
  ready: ReadyDag,
  cwd: string,
): Promise<number> {
  const { cluster } = await submitCluster(queue, { text: ready.text, file: ready.file, cwd }, paths, owner);
  return cluster;
}

/** All errors and warnings of a DAG, ignoring nodes that a rescue file marks as done. */
export function checkDag(
  order: DagOrder,
  files: DagFiles,
  cwd: string,
  afresh = false,
): { readonly loaded: LoadedDag; readonly problems: readonly Problem[] } {
  for (const file of order.files) refuseUnreadable(resolve(cwd, file), file);
  const loaded = loadDag(order.files, files, order);
  const rescue = afresh ? undefined : rescueOf(order, loaded, files);
  const text = rescue === undefined ? undefined : files.read(rescue);
  const wrong = rescue === undefined || text === undefined ? [] : applyRescue(loaded.dag, text, rescue);
  const found = lintDag(loaded, {
    read: (path) => files.read(path),
    exists: (path) => files.exists(path),
    executable: (path) => executable(resolve(cwd, path)),
    isSubmitCommand,
  });
  const cycles = subdagCycles(loaded.dag, order.files, files);
  return { loaded, problems: inOrder([...wrong, ...found, ...cycles]) };
}

/** Refuses a path that exists but is not a file, or may not be read. */
function refuseUnreadable(path: string, file: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (stat.isDirectory()) {
    throw new GryphusError('dag-refused', `${file} is a directory, not a DAG file.`, {
      suggestions: ['Name the DAG file in it.'],
    });
  }
  try {
    accessSync(path, constants.R_OK);
  } catch (cause) {
    throw new GryphusError('dag-refused', `${file} cannot be read: ${(cause as Error).message}.`, { cause });
  }
}

function rescueOf(order: DagOrder, loaded: LoadedDag, files: DagFiles): string | undefined {
  const [primary = ''] = order.files;
  const multi = order.files.length > 1;
  if (order.rescueFile !== undefined) return order.rescueFile;
  if (order.saveFile !== undefined || order.autoRescue === false) return undefined;
  const number =
    order.rescueFrom ??
    lastRescue(
      (path) => files.exists(path),
      primary,
      multi,
      loaded.settings.DAGMAN_MAX_RESCUE_NUM,
      () => undefined,
    );
  return number > 0 ? rescueName(primary, multi, number) : undefined;
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
