import { fileURLToPath } from 'node:url';
import type { Attrs } from '../job/attrs.ts';
import { readBoolean } from '../job/values.ts';
import type { AttemptSpec } from '../site/contract.ts';

/** A job that an earlier build submitted names it in dag-cli/. */
const MAIN = /^\/(?:.*\/)?dag(?:-cli)?\/dag-manager\.js$/;
const HOME = 'GRYPHUS_HOME';

type Program = Pick<AttemptSpec, 'executable' | 'args' | 'env'>;

/**
 * A DAG's manager as the present program, in the present home, and not those of when the DAG was submitted: an upgrade may have
 * put Gryphus elsewhere, and an older manager does not open the queue; a home may have been moved, or restored elsewhere.
 */
export function presentDagManager(ad: Attrs, program: Program, own: NodeJS.ProcessEnv = process.env): Program {
  const at = program.args.findIndex((arg) => MAIN.test(arg));
  if (!ad.has('GryphusDag') || readBoolean(ad, 'GryphusDag') !== true || at < 0) return program;
  const main = fileURLToPath(new URL('../dag/dag-manager.js', import.meta.url));
  const home = program.env[HOME] === undefined ? undefined : own[HOME];
  return {
    executable: program.executable.kind === 'there' ? { kind: 'there', path: process.execPath } : program.executable,
    args: program.args.with(at, main),
    env: home === undefined ? program.env : { ...program.env, [HOME]: home },
  };
}
