import { readFileSync } from 'node:fs';
import { shellPath, shellQuote } from '../util/shell-quote.ts';

export interface AgentPlace {
  readonly agentId: string;
  /** The directory that contains the agents' directories, `~/…` or absolute. */
  readonly scratch: string;
  /** How many trailing parts of this path must belong to us alone; default 1. */
  readonly ours?: number;
}

/** Shell text that enters the agent's directory, or exits with a status and the reason (entering.sh). */
export function entering({ agentId, scratch, ours = 1 }: AgentPlace, how: { readonly make: boolean }): string {
  const names = scratch.replace(/\/+$/, '').split('/');
  const own = [...names.slice(names.length - ours), agentId];
  const base = shellPath(names.slice(0, names.length - ours).join('/') || '/');
  return [
    (text ??= readFileSync(new URL('entering.sh', import.meta.url), 'utf8')),
    ...(how.make ? ['MAKE=1', `mkdir -p ${base} || exit 74`] : ['MAKE=']),
    `cd ${base} 2>/dev/null || exit 66`,
    ...own.map((name) => `enter ${shellQuote(`./${name}`)}`),
    'look_above',
    '',
  ].join('\n');
}

let text: string | undefined;

/** The reason for a refusal. */
export function refusalReason(lines: readonly string[]): string | undefined {
  return lines.flatMap((line) => /gryphus-refuses (.*)$/.exec(line)?.[1] ?? [])[0];
}
