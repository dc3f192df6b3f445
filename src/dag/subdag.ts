import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { GryphusError } from '../errors.ts';
import { dagDescription, type DescriptionFacts } from './description.ts';
import { loadDag } from './language/load.ts';
import { diskFiles } from './local.ts';
import type { DagRun } from './manager/prepare.ts';
import type { NodeSubmit } from './manager/world.ts';
import { inDirectory } from './names.ts';
import { haltName } from './rescue.ts';
import { submissionFiles } from './submission.ts';
import type { DagOrder } from './words.ts';

/** The program of a DAG manager, and what it must be told of where its agent lives. */
export function managerProgram(): Pick<DescriptionFacts, 'node' | 'main' | 'environment'> {
  const home = process.env['GRYPHUS_HOME'];
  return {
    node: process.execPath,
    main: fileURLToPath(new URL('../dag-cli/dag-manager.js', import.meta.url)),
    environment: home === undefined ? {} : { GRYPHUS_HOME: home },
  };
}

/**
 * The submit description of a SUBDAG's manager; its files are made as by a submit of the inner DAG. It goes on from the
 * inner DAG's last rescue file, so that a retry does only what is left.
 */
export function subdagDescription(outer: DagRun, file: string, directory: string, request: NodeSubmit): string {
  const files = diskFiles(directory);
  if (!existsSync(inDirectory(directory, file))) {
    throw new GryphusError(
      'input-missing',
      `The DAG file ${file} of node ${request.node} does not exist in ${directory}`,
    );
  }
  const order: DagOrder = {
    files: [file],
    autoRescue: true,
    parentDagmanId: outer.dagmanId,
    ...(outer.useDagDir === true ? { useDagDir: true } : {}),
  };
  const { attributes, environment } = loadDag([file], files, order);
  files.remove(haltName(file));
  for (const made of submissionFiles(file)) files.remove(made);
  const text = dagDescription(order, { ...managerProgram(), env: environment, attributes, append: [] });
  files.write(`${file}.condor.sub`, text);
  return text;
}
