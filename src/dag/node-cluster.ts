import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseRequest, type SubmitRules } from '../enqueue/enqueue.ts';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { quoted } from '../job/values.ts';
import type { Cluster } from '../submit/api.ts';
import type { NodeSubmit } from './manager/world.ts';

/** What all submits of one DAG have in common. */
export interface NodeContext {
  /** The DAG manager's directory, absolute. */
  readonly root: string;
  readonly owner: string;
  readonly rules?: SubmitRules;
  /** The description of a sub-DAG's manager; `directory` is absolute. */
  readonly subdag: (file: string, directory: string, request: NodeSubmit) => string;
}

export type NodeCluster =
  | { readonly cluster: Cluster; readonly attributes: AttrTexts }
  | { readonly failed: string; readonly again: boolean };

/** Reads a node's description and builds its cluster; errors name the file and line. */
export function nodeCluster(request: NodeSubmit, context: NodeContext): NodeCluster {
  const cwd = resolve(context.root, request.directory);
  if (!existsSync(cwd)) {
    return { failed: `Could not change to node directory ${cwd}: No such file or directory`, again: true };
  }
  try {
    const { text, file } = described(request, cwd, context);
    const cluster = parseRequest(
      {
        text,
        cwd,
        ...(file === undefined ? {} : { file }),
        assign: request.before.map(([name, value]) => `${name}=${value}`),
        append: request.after.map(([name, value]) => `${name} = ${value}`),
      },
      context.owner,
      context.rules ?? { defaults: [] },
    );
    if (request.oneJob && cluster.total > 1) return { failed: 'Submit generated multiple job procs', again: false };
    return { cluster, attributes: attributesOf(request) };
  } catch (thrown) {
    if (!(thrown instanceof GryphusError)) throw thrown;
    return { failed: thrown.message, again: thrown.retry === 'later' };
  }
}

function described(request: NodeSubmit, cwd: string, context: NodeContext): { text: string; file: string | undefined } {
  const { description } = request;
  if (description.is === 'text') return { text: description.text, file: undefined };
  if (description.is === 'dag') return { text: context.subdag(description.file, cwd, request), file: undefined };
  const path = resolve(cwd, description.file);
  try {
    return { text: readFileSync(path, 'utf8'), file: description.file };
  } catch (cause) {
    throw new GryphusError('input-missing', `can't open file ${path}: ${(cause as Error).message}`, { cause });
  }
}

function attributesOf(request: NodeSubmit): AttrTexts {
  return Object.fromEntries(
    Object.entries(request.attributes).map(([name, value]) => [
      name,
      typeof value === 'number' ? String(value) : quoted(value),
    ]),
  );
}
